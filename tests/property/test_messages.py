"""Whatever live objects are called, messages stay on their lines and are masked."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.applying import stale_changes
from reconciler.client import SecretResolver
from reconciler.errors import AmbiguousIdentity
from reconciler.model.codec.plan import encode
from reconciler.model.connection import SecretSettings
from reconciler.model.plan import Plan
from reconciler.model.values import SecretRef
from reconciler.model.wording import is_breaking
from reconciler.render.formats.markdown import plan_as_markdown
from reconciler.render.options import RenderOptions
from reconciler.render.plan.text import plan_as_text
from tests.support.worlds import (
    KINDS,
    desired_of,
    export,
    live_export,
    live_of,
    live_project,
    planned,
    project,
    s3,
)

_SPITEFUL = st.text(
    st.sampled_from("ab'\"`\\ \n\r\t\x1b\x85\x9b\u2028\u202e\u00e9"), min_size=5, max_size=12
).filter(str.strip)


def steers(text: str) -> bool:
    return any(is_breaking(character) for character in text)


def messages(plan: Plan) -> list[str]:
    return [
        *(note.message for note in plan.notes),
        *(refusal.message for refusal in plan.refusals),
        *(rule.message for change in plan.changes for rule in change.consequences),
    ]


@given(_SPITEFUL, _SPITEFUL)
def test_live_values_stay_on_their_lines(name: str, value: str) -> None:
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
    assert not any(steers(message) for message in messages(plan))
    drawn = plan_as_text(plan, RenderOptions(show_unmanaged=True)) + plan_as_markdown(plan)
    assert not steers((drawn + encode(plan).decode()).replace("\n", ""))
    stale = stale_changes(plan, live_of(live_project(), live_export(name=name)), KINDS, mask=str)
    assert stale
    assert not any(steers(str(change)) for change in stale)


@given(_SPITEFUL, _SPITEFUL)
def test_a_name_of_several_objects_has_no_line_of_its_own(name: str, identity: str) -> None:
    twins = [live_export(f"{identity}{n}", name=name, created_at=identity) for n in "12"]
    with pytest.raises(AmbiguousIdentity) as raised:
        planned(desired_of(project(), export(name=name)), live_of(live_project(), *twins))
    first, *details = raised.value.message.split("\n")
    assert first.startswith("batch_export.lake: 2 live batch_exports are named ")
    assert [line[:6] for line in details] == ["  id: "] * 2
    assert not any(steers(line) for line in (first, *details, raised.value.hint or ""))


@given(_SPITEFUL, st.sampled_from(["", "'", "`\"'"]))
def test_a_secret_in_a_name_is_masked_however_it_is_quoted(secret: str, around: str) -> None:
    resolver = SecretResolver(SecretSettings("."), {"KEY": secret})
    resolver.resolve(SecretRef.of("env", "KEY"))
    name = f"{around}x{secret}x{around}"
    twins = [live_export(identity, name=name) for identity in "12"]
    with pytest.raises(AmbiguousIdentity) as raised:
        planned(desired_of(project(), export(name=name)), live_of(live_project(), *twins))
    assert "x***x" in resolver.mask(raised.value.message)
