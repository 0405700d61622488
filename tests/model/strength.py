"""Put known faults back, one at a time, and count the worlds until the model finds each.

Run by hand: `python -m tests.model.strength [FAULT…]`. A fault is a small change of a copy of the
package: the guard, condition or rule without which the fault was there.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[2]
MOST = 500


@dataclass(frozen=True)
class Fault:
    """A fault: in a file, one text is replaced. `runs`: it shows in other commands than `plan`.

    `also` are further texts of the file, each with what replaces it.
    """

    name: str
    what: str
    file: str
    old: str
    new: str
    runs: bool = False
    also: tuple[tuple[str, str], ...] = ()


FAULTS = (
    Fault(
        "I1",
        "a rename in the service makes a second export",
        "reconciler/planning/guards.py",
        "    possible_duplicate,\n",
        "",
    ),
    Fault(
        "I2",
        "`ignore` and a rename make a second export",
        "reconciler/planning/duplicates.py",
        "(*matching.unmanaged, *matching.ignored, *claimed)",
        "(*matching.unmanaged, *claimed)",
    ),
    Fault(
        "I3",
        "exchanged names",
        "reconciler/planning/guards.py",
        "    permuted_names,\n",
        "",
    ),
    Fault(
        "I4",
        "an object to delete is called unmanaged",
        "reconciler/planning/duplicates.py",
        "stays = [item for item in items if item.live.identity not in self.draft.deleted]",
        "stays = items",
    ),
    Fault(
        "I5",
        "project names that differ in case",
        "reconciler/kinds/project/behaviour.py",
        "if other.name.strip().casefold() == taken and",
        "if other.name.strip() == name.strip() and",
    ),
    Fault(
        "I6 match",
        "an object of another tool is matched by the base and renamed",
        "reconciler/planning/matcher.py",
        "            and not other_tool_of(item.name)\n",
        "",
    ),
    Fault(
        "I6 rename",
        "an object of another tool loses its name",
        "reconciler/planning/guards.py",
        "    name_of_another_tool,\n",
        "",
    ),
    Fault(
        "I6 prune",
        "an object of another tool is pruned",
        "reconciler/planning/selection.py",
        "is_pruned = mode is Prune.UNMANAGED and not other_tool_of(live.name)",
        "is_pruned = mode is Prune.UNMANAGED",
    ),
    Fault(
        "O1",
        "a change of the branch is shown as drift",
        "reconciler/planning/base.py",
        "[version.resource for version in certain if version.number == 0]",
        "[version.resource for version in versions[:1]]",
    ),
    Fault(
        "O1 adopted",
        "an adoption is not noted",
        "reconciler/planning/base.py",
        "adopted=live is not None and not (versions and versions[0].number == 0)",
        "adopted=live is not None and not versions",
    ),
    Fault(
        "O2",
        "committed removals and rotations of a branch are invisible",
        "reconciler/workspace/git/base.py",
        "nearest = _nearest(repository, head, branches)",
        "nearest = None",
    ),
    Fault(
        "O3",
        "removed protection is invisible",
        "reconciler/planning/notes.py",
        "    for text, addresses in sorted(loosened.items(), "
        'key=lambda item: item[0].startswith("`")):',
        "    for text, addresses in ():",
    ),
    Fault(
        "O5",
        "environments of one organization delete what the other one declares",
        "reconciler/planning/guards.py",
        "    declared_elsewhere,\n",
        "",
    ),
    Fault(
        "D1",
        "a project is deleted with what may be a protected export",
        "reconciler/planning/guards.py",
        "    for unclear in reversed(matching.unclear):",
        "    for unclear in ():",
    ),
    Fault(
        "D1 inside",
        "a project is deleted with kept, ignored or unmanaged exports",
        "reconciler/planning/guards.py",
        "    lost_with_parent,\n",
        "",
    ),
    Fault(
        "D2",
        "`prune: true` deletes unmanaged projects",
        "reconciler/planning/selection.py",
        "if parent is not None and (is_pruned or is_inside):",
        "if (parent is not None or live.parent_id is None) and (is_pruned or is_inside):",
    ),
    Fault(
        "D3",
        "a sparse checkout deletes what it leaves out",
        "reconciler/commands/history.py",
        "return self.repository.left_out()",
        "return frozenset()",
    ),
    Fault(
        "D5",
        "`${unset}` resets the live value",
        "reconciler/planning/differ.py",
        "        if version.unset:\n",
        "        if False:\n",
    ),
    Fault(
        "D6",
        "a removed `paused` is not noted",
        "reconciler/planning/differ.py",
        "elif reset is None and not (leaf.field.toggle and is_default(leaf.field, now)):",
        "elif reset is None and not leaf.field.toggle:",
    ),
    Fault(
        "D7",
        "an environment without resources deletes",
        "reconciler/planning/guards.py",
        "    nothing_declared,\n",
        "",
    ),
    Fault(
        "F5",
        "of two former names that are both live, the first is taken",
        "reconciler/planning/matcher.py",
        "self._renamable(start, {item.id: item for item in objects}.values())",
        "self._renamable(start, {item.id: item for item in objects}.values())[:1]",
    ),
    Fault(
        "F6",
        "names of projects to create that differ in case are not refused",
        "reconciler/kinds/project/behaviour.py",
        "    for create in context.created:",
        "    for create in ():",
    ),
    Fault(
        "F8",
        "drift reports what the base deletes as deleted",
        "reconciler/authoring/drift.py",
        "change.address in base.present",
        "change.address in base.desired.resources",
        runs=True,
    ),
    Fault(
        "D10",
        "a missing token of HTTP is not refused",
        "schemas/destinations/HTTP.schema.json",
        '"required": [\n        "token"\n      ]',
        '"required": []',
    ),
    Fault(
        "G1",
        "an interrupted replacement is not continued",
        "reconciler/planning/matcher.py",
        "            if not items or resource.state is State.ABSENT:\n",
        "            if True:\n",
    ),
    Fault(
        "G2",
        "defaults of a file do not apply",
        "reconciler/workspace/layers.py",
        "own = [] if document.file == WORKSPACE_FILE else [document]",
        "own = []",
    ),
)


def copied(folder: Path) -> Path:
    """Return a copy of what the worlds need."""
    for name in ("reconciler", "schemas", "tests"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


def found_after(fault: Fault | None, first: int, folder: Path) -> tuple[int | None, str]:
    """Return how many worlds the model needs to find a fault, None if it does not, and how."""
    if fault is not None:
        path = folder / fault.file
        text = changed = path.read_text(encoding="utf-8")
        for old, new in ((fault.old, fault.new), *fault.also):
            if changed.count(old) != 1:
                raise SystemExit(f"{fault.name}: {fault.file} has {changed.count(old)} such texts")
            changed = changed.replace(old, new)
        path.write_text(changed, encoding="utf-8")
    command = [sys.executable, "-m", "tests.model.worlds", str(first), str(MOST), "--stop"]
    command += [] if fault is None or fault.runs else ["--plan"]
    ended = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    if fault is not None:
        path.write_text(text, encoding="utf-8")
    if ended.returncode not in (0, 1):
        raise SystemExit(ended.stderr)
    number, _, how = ended.stdout.strip().partition(" ")
    return (int(number) if ended.returncode else None), how


def main(names: list[str]) -> None:
    """Print a line for each fault."""
    with TemporaryDirectory() as name:
        folder = copied(Path(name))
        for fault in FAULTS:
            if not names or fault.name.split()[0] in names:
                number, how = found_after(fault, 0, folder)
                line = f"| {fault.name} | {fault.what} | {number or 'not found'} |"
                sys.stdout.write(f"{line} {how[:160]}\n")
                sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
