"""The use case `show --resolved`: one resource as an environment has it, with origins.

Needs no network, no secret and no API key; environment variables that are filled in are needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches

from reconciler.commands.planning import load_workspace, resolver_for
from reconciler.commands.runtime import Runtime, WorkspaceOptions
from reconciler.errors import BadUsage, Diagnostic, ReconcilerError
from reconciler.kinds import all_kinds
from reconciler.model.address import Address
from reconciler.model.kind import Kind
from reconciler.model.resolved import ResolvedParent, ResolvedResource
from reconciler.model.resource import Resource
from reconciler.planning.masking import Mask, masked_value
from reconciler.workspace import Loaded
from reconciler.workspace.declarations import Declaration
from reconciler.workspace.origins import Surroundings, fields_with_origin

_LISTED = 20


@dataclass(frozen=True, slots=True)
class Resolution:
    """What was asked for, and the warnings about the files."""

    resource: ResolvedResource
    diagnostics: tuple[Diagnostic, ...]


def resolved(asked: str, options: WorkspaceOptions, runtime: Runtime) -> Resolution:
    """The resource of an address, or of a key where only one resource has it.

    Raises:
        InvalidConfiguration: with every diagnostic of the files.
        BadUsage: no such resource in the files, or no such environment.
        ReconcilerError: the resource is not in this environment.

    """
    loaded = load_workspace(options, runtime.environ)
    address = _address(asked, loaded.declared)
    resource = loaded.desired.resources.get(address)
    if resource is None:
        raise _elsewhere(loaded.declared[address], loaded)
    kinds = {kind.name: kind for kind in all_kinds()}
    mask = resolver_for(loaded, runtime.environ).mask
    made = _resolved(resource, kinds[address.kind], loaded, runtime)
    return Resolution(_masked(made, mask), loaded.diagnostics)


def _address(asked: str, declared: Mapping[Address, Declaration]) -> Address:
    named = {str(address): address for address in declared}
    if asked in named:
        return named[asked]
    by_key = sorted(address for address in declared if address.key == asked)
    if len(by_key) == 1:
        return by_key[0]
    if by_key:
        raise BadUsage(
            f"'{asked}' is the key of more than one resource",
            hint=f"name one of: {', '.join(map(str, by_key))}",
        )
    keys = {address.key: str(address) for address in declared}
    close = get_close_matches(asked, [*named, *keys], n=1)
    meant = f"did you mean '{keys.get(close[0], close[0])}'? " if close else ""
    raise BadUsage(f"no resource has the address '{asked}'", hint=f"{meant}{_listed(named)}")


def _listed(named: Mapping[str, Address]) -> str:
    if not named:
        return "the files declare none"
    shown = ", ".join(sorted(named)[:_LISTED])
    more = f" and {len(named) - _LISTED} more" if len(named) > _LISTED else ""
    return f"declared: {shown}{more}"


def _environments(declaration: Declaration, loaded: Loaded) -> tuple[str, ...]:
    listed = declaration.body.get("environments")
    if isinstance(listed, list):
        return tuple(str(each) for each in listed)
    return loaded.environments or (loaded.desired.environment,)


def _elsewhere(declaration: Declaration, loaded: Loaded) -> ReconcilerError:
    names = _environments(declaration, loaded)
    at = declaration.document.key_mark((*declaration.path, "environments"))
    return ReconcilerError(
        f"{declaration.address} is not in environment {loaded.desired.environment}: "
        f"{at.file}:{at.line} has it in {', '.join(names) or 'none'}",
        hint=f"look at it with -e {names[0]}" if names else "add an environment to the list",
    )


def _resolved(resource: Resource, kind: Kind, loaded: Loaded, runtime: Runtime) -> ResolvedResource:
    declaration = loaded.declared[resource.address]
    around = Surroundings(
        loaded.places[resource.address], loaded.variables, environ=runtime.environ
    )
    return ResolvedResource(
        address=resource.address,
        collection=kind.collection,
        environment=loaded.desired.environment,
        environments=_environments(declaration, loaded),
        declared_at=declaration.mark,
        fields=fields_with_origin(resource, kind, around),
        parent=_parent(resource, kind, loaded),
        in_organization=kind.parent is not None and resource.parent is None,
    )


def _parent(resource: Resource, kind: Kind, loaded: Loaded) -> ResolvedParent | None:
    ref = resource.parent
    if ref is None or kind.parent is None:
        return None
    if ref.key is None:
        return ResolvedParent(id=ref.id, name=ref.name)
    parent = loaded.desired.resources[Address(kind.parent, ref.key)]
    return ResolvedParent(parent.address, parent.pinned_id, parent.name, parent.mark)


def _masked(made: ResolvedResource, mask: Mask) -> ResolvedResource:
    """The same with secrets hidden that are known and stand where they should not."""
    return replace(
        made,
        fields=tuple(
            replace(
                each,
                value=masked_value(each.value, mask),
                written=masked_value(each.written, mask),
                references=tuple(replace(one, text=mask(one.text)) for one in each.references),
                overrides=tuple(
                    replace(one, written=masked_value(one.written, mask)) for one in each.overrides
                ),
            )
            for each in made.fields
        ),
    )
