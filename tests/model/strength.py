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
        "(*matching.unmanaged, *matching.ignored, *claimed, *undecided)",
        "(*matching.unmanaged, *claimed, *undecided)",
    ),
    Fault(
        "I4",
        "an object to delete is called unmanaged",
        "reconciler/planning/duplicates.py",
        "stays = [item for item in items if item.identity not in draft.deleted]",
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
        "a recorded object of another tool is renamed",
        "reconciler/planning/matcher.py",
        "return None if is_renamed and other_tool_of(live.name) is not None else live",
        "return live",
    ),
    Fault(
        "I6 rename",
        "an object of another tool loses its name",
        "reconciler/planning/guards.py",
        "    name_of_another_tool,\n",
        "",
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
        "D1 inside",
        "a project is deleted with kept, ignored or unmanaged exports",
        "reconciler/planning/guards.py",
        "    lost_with_parent,\n",
        "",
    ),
    Fault(
        "D3",
        "a sparse checkout deletes what it leaves out",
        "reconciler/commands/history.py",
        "if removed and self.repository.is_sparse else ():",
        "if False else ():",
    ),
    Fault(
        "D5",
        "`${unset}` resets the live value",
        "reconciler/planning/differ.py",
        "if path[0] not in others and not resource.leaves(path):",
        "if path[0] not in others:",
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
        "D10",
        "a missing token of HTTP is not refused",
        "schemas/destinations/HTTP.schema.json",
        '"required": [\n        "token"\n      ]',
        '"required": []',
    ),
    Fault(
        "G2",
        "defaults of a file do not apply",
        "reconciler/workspace/layers.py",
        "own = [] if document.file == WORKSPACE_FILE else [document]",
        "own = []",
    ),
    Fault(
        "N1",
        "an entry counts although its commit does not declare it so",
        "reconciler/planning/matcher.py",
        "        inventory = inventory.counted(live, by_name)\n",
        "        pass\n",
    ),
    Fault(
        "N2",
        "a removed object is deleted although HEAD lacks its commit",
        "reconciler/planning/inventory.py",
        "address in self.behind,",
        "False,",
    ),
    Fault(
        "N3",
        "a removed object is deleted under another name",
        "reconciler/planning/inventory.py",
        "live.name.strip() != was.name,",
        "False,",
    ),
    Fault(
        "N4",
        "a removed object is deleted although another file declares it",
        "reconciler/planning/inventory.py",
        "if address in self.elsewhere:",
        "if False:",
    ),
    Fault(
        "N5",
        "secrets that changed are not sent",
        "reconciler/planning/inventory.py",
        "resend=self.entries[at].secrets != self.hashes.get(address)",
        "resend=False",
    ),
    Fault(
        "N6",
        "a job believes entries that the trusted branch never had",
        "reconciler/commands/history.py",
        "elif entry.commit in missing or entry.commit not in line:",
        "elif entry.commit in missing:",
    ),
    Fault(
        "N7",
        "a recorded object is renamed beside one of the declared name",
        "reconciler/planning/matcher.py",
        "return [live, *(item for item in self._free_named(start) if item.id not in recorded)]",
        "return [live]",
    ),
    Fault(
        "N8",
        "a move that was cut short is not refused",
        "reconciler/planning/guards.py",
        "    left_by_move,\n",
        "",
    ),
    Fault(
        "N9",
        "what was left stays in the inventory",
        "reconciler/planning/inventory.py",
        "is_gone = identity in ran.deleted or address in leaving",
        "is_gone = identity in ran.deleted",
        runs=True,
    ),
    Fault(
        "O1",
        "a change in the files is shown as drift",
        "reconciler/planning/differ.py",
        "return Origin.FILES if is_equal(wanted.field, applied.value, live) else Origin.BOTH",
        "return Origin.LIVE",
    ),
    Fault(
        "F8",
        "drift reports entries that do not count as deleted",
        "reconciler/authoring/drift.py",
        "(inventory or Inventory()).counted(live, kinds_by_name()).entries",
        "(inventory or Inventory()).entries",
        runs=True,
    ),
    Fault(
        "N11",
        "an ignored object that was applied is doubled",
        "reconciler/planning/duplicates.py",
        "matching.replaced.get(match.resource.address) if match.live is None else None",
        "None",
    ),
    Fault(
        "N12",
        "a move that was cut short deletes a protected object",
        "reconciler/planning/guards.py",
        'inventory.by_object.get((kind.name, change.live_id or ""), address)',
        "address",
        also=(("live is not None and inventory.is_protected(address, live, parent)", "False"),),
    ),
    Fault(
        "N13",
        "entries that do not count stay with the object of another address",
        "reconciler/planning/inventory.py",
        "in inventory.every.items():",
        "in inventory.entries.items():",
        runs=True,
    ),
    Fault(
        "N10",
        "an older commit is applied",
        "reconciler/commands/history.py",
        "if record is not None and record.is_newer:",
        "if False:",
        runs=True,
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
