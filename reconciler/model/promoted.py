"""The result of a promotion: what was edited so that one environment resolves as another does."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from reconciler.model.address import Address
from reconciler.model.compared import OnlyIn
from reconciler.model.file_change import FileChange


class Promoted(Struct, frozen=True):
    """A promotion that was written, or would be if not `written`.

    `edited` are the resources whose overrides change, `added` those that come into the second
    environment, `removed` those that leave it. `left` are other resources that only the second
    environment has.
    """

    first: str
    second: str
    texts: Mapping[str, str]
    changes: Mapping[str, FileChange]
    edited: tuple[Address, ...]
    added: tuple[Address, ...] = ()
    removed: tuple[Address, ...] = ()
    left: tuple[OnlyIn, ...] = ()
    written: bool = True
