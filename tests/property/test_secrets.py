"""No secret is ever printed, wherever it appears."""

from __future__ import annotations

import base64
from urllib.parse import quote

from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.plan import encode
from reconciler.model.redaction import masked_in
from reconciler.model.settings import SecretSettings
from reconciler.model.values import SecretRef
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
    with_secrets,
)

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
        live_export(
            destination={
                "type": "S3",
                "config": {"bucket_name": "b", "region": "r", "prefix": hidden},
            }
        ),
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
