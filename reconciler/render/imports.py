"""What import wrote, and what it left: lines for people, differences for a dry run, JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import orjson

from reconciler.model.imported import Imported, Left
from reconciler.model.live import LiveObject
from reconciler.model.values import JSON
from reconciler.model.wording import printable, several
from reconciler.render.difference import difference_as_text

_FORMAT_VERSION = 1
_MOST = 10


def imported_as_text(done: Imported) -> str:
    """Each resource with its file, the count, and the secrets to set."""
    lines = [f'+ {each.address} "{printable(each.name)}" in {each.file}' for each in done.adopted]
    if lines:
        lines.append("")
    lines.append(f"Imported: {_counts(done)}")
    if done.secrets:
        lines += ["", *_secrets(done)]
    return _joined(done, lines)


def import_as_diff(done: Imported, *, colour: bool = False) -> str:
    """What would be written, as a unified difference that `patch` takes."""
    return done.mask(
        "".join(
            difference_as_text(
                name,
                before.lines,
                after.lines,
                shown=(before.shown, after.shown),
                colour=colour,
            )
            for name, (before, after) in done.sides.items()
        )
    )


def import_as_json(done: Imported) -> str:
    """The same for programs: one object, whose keys stay."""
    value: dict[str, JSON] = {
        "format_version": _FORMAT_VERSION,
        "written": done.written,
        "files": [{"path": name, "new": name not in done.before} for name in done.files],
        "resources": [
            {"address": str(each.address), "id": each.id, "name": each.name, "file": each.file}
            for each in done.adopted
        ],
        "secrets": [{"variable": name, "address": str(address)} for name, address in done.secrets],
        "left_out": [
            {**_object(done, each.live), "field": each.what, "why": done.mask(each.why)}
            for each in done.left_out
        ],
        "not_imported": [
            {**_object(done, each.live), "why": done.mask(each.why)} for each in done.refused
        ],
        "ignored": [_object(done, each) for each in done.ignored],
        "unmatched": list(done.unmatched),
        "dropped": [{"file": file, "what": what} for file, what in done.gone],
        "namesakes": [
            {"address": str(each.address), "elsewhere": str(each.elsewhere)}
            for each in done.namesakes
        ],
        "in_the_files_already": done.claimed,
        "calls": done.calls,
    }
    return done.mask(orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()) + "\n"


def remarks_on_import(done: Imported) -> str:
    """What is not in the files, and why: nothing is left out in silence."""
    lines: list[str] = []
    if not done.written:
        lines.append(f"Would import: {_counts(done)}. Nothing was written")
        lines += _secrets(done) if done.secrets else []
    lines += [f"Not imported: {_told(each)}" for each in done.refused]
    lines += [f"Left to the service: {_told(each)}" for each in done.left_out]
    if done.ignored:
        names = [f"'{printable(each.name)}'" for each in done.ignored]
        lines.append(f"Ignored, as the policy says: {_some(names)}")
    lines += [f"Nothing live fits {each}" for each in done.unmatched]
    lines += [
        f"{file} can't be extended line by line and stays as it is: see {beside} beside it"
        for file, beside in done.beside.items()
    ]
    lines += [f"No more in {file}: {printable(what)}" for file, what in done.gone]
    if done.namesakes:
        pairs = [f"{each.address} ({each.elsewhere})" for each in done.namesakes]
        lines.append(f"Other environments have resources of the same names: {_some(pairs)}")
        lines.append(
            "  they are kept apart; where two should be one, let it name both environments, with "
            "what differs in `overrides:`, and remove the other"
        )
    lines.append(f"{done.calls} calls to read")
    return _joined(done, lines)


def _secrets(done: Imported) -> Iterator[str]:
    width = max(len(name) for name, _ in done.secrets)
    yield f"Secrets that nobody can read back, to be set as variables: {len(done.secrets)}"
    yield from (f"  {name:{width}}  {address}" for name, address in done.secrets)
    yield "A plan needs none of them; creating and changing a destination does."


def _object(done: Imported, live: LiveObject) -> dict[str, JSON]:
    return {"kind": live.kind, "id": live.id, "name": done.mask(live.name)}


def _told(each: Left) -> str:
    live = each.live
    what = f" {each.what}" if each.path else ""
    name = printable(live.name)
    return f"{live.kind} '{name}' (id {live.id}){what}: {printable(each.why)}"


def _some(told: Sequence[str]) -> str:
    more = f" and {len(told) - _MOST} more" if len(told) > _MOST else ""
    return ", ".join(told[:_MOST]) + more


def _counts(done: Imported) -> str:
    kinds = Counter(each.address.kind for each in done.adopted)
    told = ", ".join(several(count, kind) for kind, count in kinds.items())
    parts = [told or "nothing"]
    extended = len(done.before)
    if done.files:
        files = several(len(done.files), "file")
        parts.append(f"into {files}" + (f", {extended} of them there before" if extended else ""))
    if done.claimed:
        parts.append(f"({done.claimed} in the files already)")
    return " ".join(parts)


def _joined(done: Imported, lines: list[str]) -> str:
    return done.mask("".join(f"{line}\n" for line in lines))
