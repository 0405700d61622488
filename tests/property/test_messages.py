"""What a plan prints: live names forge no lines, and no secret is shown, wherever it appears."""

from __future__ import annotations

import base64
from urllib.parse import quote

from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.plan import Plan, encode
from reconciler.model.redaction import masked_in
from reconciler.model.settings import SecretSettings
from reconciler.model.text import is_breaking
from reconciler.model.values import SecretRef
from reconciler.providers.provider import flaw_of
from reconciler.render.options import RenderOptions, Style
from reconciler.render.plan_markdown import plan_as_markdown
from reconciler.render.plan_text import plan_as_text
from reconciler.service.http import SecretResolver
from tests.support.worlds import (
    desired_of,
    export,
    live_export,
    live_of,
    live_project,
    planned,
    project,
    s3,
    stale_changes,
    with_secrets,
)

_HOSTILE = st.text(
    st.sampled_from("ab'\"`\\ \n\r\t\x1b\x85\x9b\u2028\u202e\u00e9"), min_size=6, max_size=12
).filter(str.strip)


def breaks_lines(text: str) -> bool:
    return any(is_breaking(character) for character in text)


def messages(plan: Plan) -> list[str]:
    return [
        *(note.message for note in plan.notes),
        *(refusal.message for refusal in plan.refusals),
        *(rule.message for change in plan.changes for rule in change.consequences),
    ]


@given(_HOSTILE, _HOSTILE)
def test_live_values_cannot_forge_lines(name: str, value: str) -> None:
    desired = desired_of(
        project(),
        export(destination=s3(prefix="new/"), model="persons", interval="day"),
        project("near", name=name.swapcase()),
    )
    live = live_of(
        live_project(),
        live_project(2, name),
        live_export(
            destination=s3(prefix=value),
            model=value,
            interval=value,
            latest_runs=[{"status": name}],
        ),
        live_export("stray" + value, name=value),
    )
    plan = planned(desired, live)
    assert plan.effective
    assert not any(breaks_lines(message) for message in messages(plan))
    rendered = plan_as_text(plan, RenderOptions(show_unmanaged=True)) + plan_as_markdown(plan)
    assert not breaks_lines((rendered + encode(plan).decode()).replace("\n", ""))
    stale = stale_changes(plan, live_of(live_project(), live_export(name=name)))
    assert stale
    assert not any(breaks_lines(str(change)) for change in stale)


def _is_no_word(text: str) -> bool:
    """Return whether a secret is one, and not a word of the tool, which is left where it is."""
    is_word = all(character.isalnum() or character.isspace() for character in text)
    return flaw_of(text) is None and not is_word


@given(_HOSTILE.filter(_is_no_word), st.sampled_from(["", "'", "`\"'"]))
def test_a_secret_in_a_quoted_name_is_masked(secret: str, around: str) -> None:
    resolver = SecretResolver(SecretSettings("."), {"KEY": secret})
    resolver.resolve(SecretRef.of("env", "KEY"))
    name = f"{around}x{secret}x{around}"
    duplicates = [live_export(identity, name=name) for identity in "12"]
    plan = planned(desired_of(project(), export(name=name)), live_of(live_project(), *duplicates))
    assert "x***x" in resolver.mask(plan.refusals[0].message)


_secrets = st.text("abcXYZ0189/+=_-. ", min_size=6, max_size=90).filter(
    lambda text: len(text.strip()) > 5 and text.strip() not in "interval destination"
)
_forms = st.sampled_from(
    [
        lambda secret: secret,
        lambda secret: base64.b64encode(secret.encode()).decode(),
        lambda secret: quote(secret, safe=""),
    ]
)


@given(_secrets, _forms, st.text("xyz ", max_size=120), st.integers(40, 120))
def test_a_secret_in_a_live_value_is_in_no_output(secret, form, around, width) -> None:
    resolver = SecretResolver(SecretSettings("."), {"ID": "another-one", "KEY": secret})
    resolver.resolve(SecretRef.of("env", "KEY"))
    hidden = f"{around}{form(secret)}{around}"
    desired = desired_of(project(), export(destination=with_secrets(prefix="new/")))
    live = live_of(
        live_project(),
        live_export(destination=s3(prefix=hidden)),
        live_export("stray", name=hidden),
    )
    plan = masked_in(planned(desired, live), resolver.mask)
    drawn = [
        plan_as_text(plan, RenderOptions(Style(width=width), show_unmanaged=True)),
        plan_as_markdown(plan),
        encode(plan).decode(),
    ]
    for text in drawn:
        assert form(secret) not in "".join(text.split("\n        "))
        assert form(secret) not in text


@given(_secrets)
def test_no_repr_contains_a_secret(secret: str) -> None:
    resolver = SecretResolver(SecretSettings("."), {"KEY": secret})
    ref = SecretRef.of("env", "KEY")
    value = resolver.resolve(ref)
    assert value.reveal() == secret
    shown = f"{value} {value!r} {ref} {ref!r} {resolver!r} {resolver.mask(f'a {secret} b')}"
    assert secret not in shown
