"""Destination types of all dialects (docs/service.md 1.3 to 1.5), beyond their schemas."""

from __future__ import annotations

from reconciler.kinds.batch_export.places import ADDRESSED_BY, OUTERMOST, PLACES, SUMMARIES
from reconciler.model.described import variant_of
from reconciler.model.dialect import Dialect
from reconciler.model.field_types import OpenObject, SetOf, Text
from reconciler.model.kind import Field

_EVENTS = SetOf(Text(), empty_is_null=True)

_SPECIAL = (
    Field("exclude_events", _EVENTS),
    Field("include_events", _EVENTS),
    # Old servers validate the compression against the file format in the same PATCH, which is
    # JSONLines by default (docs/service.md 1.6).
    Field("compression", sent_with=("file_format",)),
    Field("file_format", sent_with=("compression",)),
    Field("encryption", sent_with=("kms_key_id",)),
    Field("kms_key_id", sent_with=("encryption",)),
    # Another authentication type is refused without its secret.
    Field(
        "authentication_type",
        sent_with=("user", "password", "private_key", "private_key_passphrase"),
    ),
    Field("mode", sent_with=("copy_inputs",)),
    # Contains nested credentials, which answers omit (docs/service.md 1.3), so it is compared
    # without them and always sent as a whole.
    Field("copy_inputs", OpenObject(numbers_as_text=True), sent_with=("mode",)),
)

DESTINATION = variant_of(
    "batch_export",
    "destination",
    _SPECIAL,
    fixed_since=Dialect.V2026,
    # Hidden in lists, readable by id only (docs/service.md 1.3).
    unlisted=frozenset({"Workflows"}),
    places=PLACES,
    outermost=OUTERMOST,
    addressed_by=ADDRESSED_BY,
    summaries=SUMMARIES,
)
