"""A copy of the service for a rehearsal, as values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from msgspec import Struct, field

from reconciler.model.values import JSONObject

Related: TypeAlias = Mapping[tuple[str, int], JSONObject]
"""Objects without a kind, by collection and id, such as `("integrations", 7): {"kind": …}`."""
PLACEHOLDER = "placeholder"
"""The value of every secret of a copy."""


class Copied(Struct, frozen=True):
    """An object of a copy.

    `body` is stored, with placeholders for secrets that the service must have. `related` are the
    objects that it refers to, and `assumed` what else must exist for it.
    """

    body: JSONObject
    related: Related = field(default_factory=dict)
    assumed: tuple[str, ...] = ()

    @classmethod
    def plain(cls, body: JSONObject, sent: JSONObject) -> Copied:
        """Return a body as it is."""
        del sent
        return cls(body)


class ServiceCopy(Struct, frozen=True):
    """What a copy of the service starts with.

    `seed` is the content of a seed file, without a key. `assumed` are the objects that must exist
    for the plan, and that live state does not show.
    """

    seed: Mapping[str, Any]
    assumed: tuple[str, ...] = ()
