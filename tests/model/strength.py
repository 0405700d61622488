"""Put known faults back, one at a time, and count the worlds until the model finds each.

Run by hand: `python -m tests.model.strength [FAULT…]`. A fault is a small change of a copy of the
package: the guard, condition or rule without which the fault was there.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[2]
MOST = 500


FAULTS = {
    "reconciler/commands/drift.py": (
        (
            "F8",
            "drift reports entries that do not count as deleted",
            "(inventory or Inventory()).counted(live, kinds_by_name()).entries",
            "(inventory or Inventory()).entries",
        ),
    ),
    "reconciler/commands/history.py": (
        (
            "N6",
            "a job believes entries that the trusted branch never had",
            "if in_job and commit not in self._line:",
            "if False:",
        ),
        (
            "N10",
            "an older commit is applied",
            "if record is not None and record.is_newer:",
            "if False:",
        ),
    ),
    "reconciler/kinds/project/behaviour.py": (
        (
            "I5",
            "project names that differ in case",
            "if other.name.strip().casefold() == taken and",
            "if other.name.strip() == name.strip() and",
        ),
        (
            "F6",
            "names of projects to create that differ in case are not refused",
            "    for create in context.created:",
            "    for create in ():",
        ),
    ),
    "reconciler/planning/compare.py": (
        (
            "D5",
            "`${unset}` resets the live value",
            "if path[0] not in others and not resource.leaves(path):",
            "if path[0] not in others:",
        ),
        (
            "D6",
            "a removed `paused` is not noted",
            "elif reset is None and not (leaf.field.toggle and is_default(leaf.field, now)):",
            "elif reset is None and not leaf.field.toggle:",
        ),
        (
            "O1",
            "a change in the files is shown as drift",
            "return Origin.FILES if is_equal(wanted.field, applied.value, live) else Origin.BOTH",
            "return Origin.LIVE",
        ),
    ),
    "reconciler/planning/duplicates.py": (
        (
            "I2",
            "`ignore` and a rename make a second export",
            "(*matching.unmanaged, *matching.ignored, *claimed, *undecided)",
            "(*matching.unmanaged, *claimed, *undecided)",
        ),
        (
            "I4",
            "an object to delete is called unmanaged",
            "stays = [item for item in items if item.identity not in draft.deleted]",
            "stays = items",
        ),
        (
            "N11",
            "an ignored object that was applied is doubled",
            "matching.replaced.get(match.resource.address) if match.live is None else None",
            "None",
        ),
    ),
    "reconciler/planning/guards.py": (
        ("I1", "a rename in the service makes a second export", "    possible_duplicate,\n", ""),
        (
            "I6 rename",
            "an object of another tool loses its name",
            "    name_of_another_tool,\n",
            "",
        ),
        (
            "D1 inside",
            "a project is deleted with kept, ignored or unmanaged exports",
            "    lost_with_parent,\n",
            "",
        ),
        ("D7", "an environment without resources deletes", "    nothing_declared,\n", ""),
        ("N8", "a move that was cut short is not refused", "    left_by_move,\n", ""),
        (
            "N12",
            "a move that was cut short deletes a protected object",
            'inventory.by_object.get((kind.name, change.live_id or ""), address)',
            "address",
        ),
    ),
    "reconciler/planning/inventory.py": (
        (
            "N2",
            "a removed object is deleted although HEAD lacks its commit",
            ": entry.behind,",
            ": False,",
        ),
        (
            "N3",
            "a removed object is deleted under another name",
            "live.name.strip() != was.name,",
            "False,",
        ),
        (
            "N4",
            "a removed object is deleted although another file declares it",
            "if entry.elsewhere:",
            "if False:",
        ),
        (
            "N5",
            "secrets that changed are not sent",
            "resend=entry.secrets != self.hashes.get(address)",
            "resend=False",
        ),
        (
            "N9",
            "what was left stays in the inventory",
            "and (address in leaving or (address.kind, entry.id) in held):",
            "and (address.kind, entry.id) in held:",
        ),
        (
            "N13",
            "entries that do not count stay with the object of another address",
            "in inventory.every.items():",
            "in inventory.entries.items():",
        ),
    ),
    "reconciler/planning/match.py": (
        (
            "F5",
            "of two former names that are both live, the first is taken",
            "self._renamable(start, {item.id: item for item in objects}.values())",
            "self._renamable(start, {item.id: item for item in objects}.values())[:1]",
        ),
        (
            "N1",
            "an entry counts although its commit does not declare it so",
            "(inventory or Inventory()).counted(live, by_name)",
            "inventory or Inventory()",
        ),
        (
            "N7",
            "a recorded object is renamed beside one of the declared name",
            "return [live, *(item for item in self._free_named(start) if item.id not in recorded)]",
            "return [live]",
        ),
    ),
    "reconciler/planning/notes.py": (
        (
            "O3",
            "removed protection is invisible",
            "in sorted(texts.items(), key=",
            "in sorted((), key=",
        ),
    ),
    "reconciler/files/resource_files.py": (
        (
            "D3",
            "a sparse checkout deletes what it leaves out",
            "if repository.is_sparse:",
            "if False:",
        ),
    ),
    "reconciler/files/layers.py": (
        (
            "G2",
            "defaults of a file do not apply",
            "own = [] if document.file == WORKSPACE_FILE else [document]",
            "own = []",
        ),
    ),
    "schemas/destinations/HTTP.schema.json": (
        (
            "D10",
            "a missing token of HTTP is not refused",
            '"required": [\n        "token"\n      ]',
            '"required": []',
        ),
    ),
}
"""By file: the name, what is wrong then, a text of the file, and what replaces it."""
RUNS = ("F8", "N9", "N10", "N13")
"""Faults that show in other commands than `plan`."""


def copied(folder: Path) -> Path:
    """Return a copy of what the worlds need."""
    for name in ("reconciler", "schemas", "tests"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


def found_after(name: str, path: Path, old: str, new: str) -> tuple[int | None, str]:
    """Return how many worlds the model needs to find a fault, None if it does not, and how."""
    text = path.read_text(encoding="utf-8")
    if text.count(old) != 1:
        raise SystemExit(f"{name}: {path.name} has {text.count(old)} such texts")
    path.write_text(text.replace(old, new), encoding="utf-8")
    command = [sys.executable, "-m", "tests.model.worlds", "0", str(MOST), "--stop"]
    ended = subprocess.run(
        command + ([] if name in RUNS else ["--plan"]),
        env={**os.environ, "PYTHONPATH": "."},
        capture_output=True,
        text=True,
        check=False,
    )
    path.write_text(text, encoding="utf-8")
    if ended.returncode not in (0, 1):
        raise SystemExit(ended.stderr)
    number, _, how = ended.stdout.strip().partition(" ")
    return (int(number) if ended.returncode else None), how


def main(names: list[str]) -> None:
    """Print a line for each fault."""
    with TemporaryDirectory() as folder, chdir(copied(Path(folder))):
        for file, faults in FAULTS.items():
            for name, what, old, new in faults:
                if not names or name.split()[0] in names:
                    number, how = found_after(name, Path(file), old, new)
                    line = f"| {name} | {what} | {number or 'not found'} | {how[:160]}"
                    sys.stdout.write(f"{line}\n")
                    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
