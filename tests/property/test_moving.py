"""`mv` in any workspace: the key changes everywhere, nothing else does, and back is back."""

from __future__ import annotations

import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from reconciler.commands.mv import move
from reconciler.files.loading import load
from reconciler.model.resource import Desired, ParentRef, Resource
from tests.conftest import LONG
from tests.support.cli import write

_KEYS = ["web", "web-2", "lake", "a.b", "w_3"]
_quotes = st.sampled_from(["", "'", '"'])
_comments = st.sampled_from(["", "  # web", " # lake: web"])


@st.composite
def _exports(draw: st.DrawFn, projects: list[str]) -> list[str]:
    """Draw lines of exports whose parents are written in any place and style."""
    lines = []
    if draw(st.booleans()):
        lines += ["defaults:", "  batch_export:", f"    project: {draw(st.sampled_from(projects))}"]
    lines += ["batch_exports:"]
    for key in draw(st.lists(st.sampled_from(_KEYS), min_size=1, max_size=3, unique=True)):
        parent, quote = draw(st.sampled_from(projects)), draw(_quotes)
        beside = draw(_comments)
        if draw(st.booleans()):
            lines.append("  # web above")
        if draw(st.booleans()):
            lines.append(
                f"  {quote}{key}{quote}: {{project: {quote}{parent}{quote}, name: N {key}, "
                f"interval: hour, destination: {{type: NoOp}}}}{beside}"
            )
            continue
        lines += [f"  {key}:{beside}", f"    name: N {key}"]
        if draw(st.booleans()):
            lines.append(f"    project: {quote}{parent}{quote}{beside}")
        lines += ["    interval: hour", "    destination:", "      type: NoOp"]
        if draw(st.booleans()):
            other = draw(st.sampled_from(projects))
            lines += ["    overrides:", "      two:", f"        project: {other}{beside}"]
    return lines


@st.composite
def _workspaces(draw: st.DrawFn) -> tuple[dict[str, str], list[str], str]:
    """Draw files, the addresses in them, and a line end."""
    projects = draw(st.lists(st.sampled_from(_KEYS), min_size=1, max_size=3, unique=True))
    top = ["version: 1", "environments: {one: {}, two: {}}", "defaults:", "  batch_export:"]
    top += [f"    project: {draw(st.sampled_from(projects))}{draw(_comments)}"]
    declared = [f"  {key}: {{name: P {key}}}{draw(_comments)}" for key in projects]
    exports = draw(_exports(projects))
    below = exports[exports.index("batch_exports:") + 1 :]
    keys = [line.strip().split(":")[0].strip("'\"") for line in below if line[2] not in " #"]
    end = draw(st.sampled_from(["\n", "\r\n"]))
    files = {
        "reconciler.yaml": top,
        "a.yaml": ["projects:", *declared],
        "b.yaml": exports,
    }
    addresses = [f"project.{key}" for key in projects] + [f"batch_export.{key}" for key in keys]
    return {name: end.join([*lines, ""]) for name, lines in files.items()}, addresses, end


def _desired(folder: Path) -> list[Desired]:
    return [load(folder, environment=name, environ={}).desired for name in ("one", "two")]


def _renamed(resource: Resource, old: Any, new: Any) -> Resource:
    """Return a resource as it is after the renaming of an address, without its places."""
    parent = resource.parent
    if old.kind == "project" and parent is not None and parent.key == old.key:
        parent = ParentRef(key=new.key)
    address = new if resource.address == old else resource.address
    return replace(resource, address=address, parent=parent, mark=None, marks={})


def _texts(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def _without_quotes(texts: dict[str, bytes]) -> dict[str, bytes]:
    return {name: re.sub(b"['\"]", b"", text) for name, text in texts.items()}


@settings(max_examples=500 if LONG else 25)
@given(workspace=_workspaces(), data=st.data())
def test_a_rename_changes_the_key_and_nothing_else(
    workspace: tuple[dict[str, str], list[str], str], data: st.DataObject
) -> None:
    files, addresses, _ = workspace
    old = data.draw(st.sampled_from(addresses))
    new = data.draw(st.sampled_from(["brand-new", "x", "old.web"]))
    with TemporaryDirectory() as name:
        folder = write(Path(name), files)
        before, was = _desired(folder), _texts(folder)
        moved = move(folder, old, new, {}, write=True)
        after = _desired(folder)
        for first, second in zip(before, after, strict=True):
            expected = [_renamed(item, moved.old, moved.new) for item in first.in_order()]
            actual = [replace(item, mark=None, marks={}) for item in second.in_order()]
            assert sorted(expected, key=lambda item: item.address) == sorted(
                actual, key=lambda item: item.address
            )
        for file, text in _texts(folder).items():
            comments = [line.partition(b"#")[2] for line in text.splitlines()]
            assert comments == [line.partition(b"#")[2] for line in was[file].splitlines()]
        move(folder, str(moved.new), moved.old.key, {}, write=True)
        # A value in brackets that changes gets its quotes again only if it needs them.
        assert _without_quotes(_texts(folder)) == _without_quotes(was)
