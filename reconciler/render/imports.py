"""What import wrote, and what it left: lines for people, and differences for a dry run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from difflib import unified_diff

from reconciler.model.imported import Imported, Left
from reconciler.model.wording import printable


def imported_as_text(done: Imported) -> str:
    """Each resource with its file, the count, and the secrets to set."""
    lines = [f'+ {each.address} "{printable(each.name)}" in {each.file}' for each in done.adopted]
    if lines:
        lines.append("")
    lines.append(f"Imported: {_counts(done)}")
    if done.secrets:
        width = max(len(name) for name, _ in done.secrets)
        lines += [
            "",
            f"Secrets that nobody can read back, to be set as variables: {len(done.secrets)}",
        ]
        lines += [f"  {name:{width}}  {address}" for name, address in done.secrets]
        lines.append("A plan needs none of them; creating and changing a destination does.")
    return _joined(lines)


def import_as_diff(done: Imported) -> str:
    """What would be written, as a unified difference."""
    lines: list[str] = []
    for name, text in done.files.items():
        old = done.before.get(name)
        lines += unified_diff(
            old.splitlines() if old is not None else [],
            text.splitlines(),
            fromfile=f"a/{name}" if old is not None else "/dev/null",
            tofile=f"b/{name}",
            lineterm="",
        )
    return _joined(lines)


def remarks_on_import(done: Imported) -> str:
    """What is not in the files, and why: nothing is left out in silence."""
    lines = [f"Not imported: {_told(each)}" for each in done.refused]
    lines += [f"Left to the service: {_told(each)}" for each in done.left_out]
    if done.ignored:
        names = ", ".join(f"'{printable(each.name)}'" for each in done.ignored[:10])
        more = f" and {len(done.ignored) - 10} more" if len(done.ignored) > 10 else ""
        lines.append(f"Ignored, as the policy says: {names}{more}")
    lines.append(f"{done.calls} calls to read")
    return _joined(lines)


def _told(each: Left) -> str:
    live = each.live
    what = f" {each.what}" if each.path else ""
    name = printable(live.name)
    return f"{live.kind} '{name}' (id {live.id}){what}: {printable(each.why)}"


def _counts(done: Imported) -> str:
    kinds = Counter(each.address.kind for each in done.adopted)
    parts = [", ".join(_counted(kinds)) or "nothing"]
    extended = len(done.before)
    if done.files:
        files = f"{len(done.files)} file{'s' if len(done.files) > 1 else ''}"
        parts.append(f"into {files}" + (f", {extended} of them there before" if extended else ""))
    if done.claimed:
        parts.append(f"({done.claimed} in the files already)")
    return " ".join(parts)


def _counted(kinds: Counter[str]) -> Iterator[str]:
    for kind, count in kinds.items():
        yield f"{count} {kind}{'s' if count > 1 else ''}"


def _joined(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
