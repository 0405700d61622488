"""The place that sets a field."""

from __future__ import annotations

from msgspec import Struct

from reconciler.diagnostics import Mark


class FieldOrigin(Struct, frozen=True):
    """A place that sets a field.

    `layer` is "resource", "override <environment>" or "defaults"; for a reference, it is the
    mapping of the variables, "environment", "default" or "file". `at` is None outside of files.
    """

    layer: str
    at: Mark | None
