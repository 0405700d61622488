"""Integrations: stored credentials of a parent, which files name by id or by name."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from reconciler.model.values import JSON, Path


class Integration(Struct, frozen=True):
    """One integration. `id` is a number. `name` is unique by kind and parent, "" without one.

    `account` says where it signs in, such as `AWS account 123456789012`, "" if unknown.
    """

    id: str
    kind: str
    name: str = ""
    account: str = ""

    def __str__(self) -> str:
        details = ", ".join(filter(None, (self.id, self.account)))
        return f"{self.name} ({details})" if self.name else details


class Integrations(Struct, frozen=True):
    """Those of one parent. `hidden`: why the key sees none, "" if it sees all of them."""

    items: tuple[Integration, ...] = ()
    hidden: str = ""

    def named(self, kind: str, name: str) -> tuple[Integration, ...]:
        """Return those of a kind with exactly this name."""
        return tuple(item for item in self.items if (item.kind, item.name) == (kind, name))

    def of_id(self, value: JSON) -> Integration | None:
        """Return that of an id, a number or its text."""
        return next((item for item in self.items if item.id == str(value)), None)


class IntegrationField(Struct, frozen=True):
    """A field that takes an integration of one kind. Text is a name unless `by_text` is False."""

    path: Path
    kind: str
    by_text: bool = True

    def name_in(self, value: JSON) -> str | None:
        """Return the name in a configured value, None for an id and for what is neither."""
        if isinstance(value, Mapping):
            name = value.get("name")
            return name if isinstance(name, str) else None
        is_name = self.by_text and isinstance(value, str) and not value.isdigit()
        return value if is_name else None

    def written(self, integrations: Integrations, value: JSON) -> JSON:
        """Return the name of an id as a file has it here, the id itself if no name finds it."""
        item = integrations.of_id(value)
        if item is None or not item.name or len(integrations.named(item.kind, item.name)) > 1:
            return value
        return item.name if self.by_text and not item.name.isdigit() else {"name": item.name}
