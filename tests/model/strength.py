"""Put known faults back, one at a time, and count the worlds until the model finds each.

Run by hand: `python -m tests.model.strength [FAULT…]`. A fault is a small change of a copy of the
package: the guard, condition or rule without which the fault was there.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[2]
MOST = 500
FAULTS = r"""
F8 commands/drifted.py: drift reports entries that do not count as deleted
-(inventory or Inventory()).counted(live).entries
+(inventory or Inventory()).entries
N6 commands/history.py: a job believes entries that the trusted branch never had
-if line is not None and commit not in line:
+if False:
N10 commands/history.py: an older commit is applied
-if record is not None and record.is_newer else set()
+if False else set()
I5 kinds/project/behaviour.py: project names that differ in case
-if other.name.strip().casefold() == taken and
+if other.name.strip() == name.strip() and
F6 kinds/project/behaviour.py: names of projects to create that differ in case are not refused
-    for create in context.created:
+    for create in ():
D5 planning/compare.py: `${unset}` resets the live value
-if path[0] not in others and not resource.leaves(path):
+if path[0] not in others:
D6 planning/compare.py: a removed `paused` is not noted
-elif reset is None and not (leaf.field.toggle and is_default(leaf.field, now)):
+elif reset is None and not leaf.field.toggle:
O1 planning/compare.py: a change in the files is shown as drift
-return Origin.FILES if is_equal(wanted.field, applied.value, live) else Origin.BOTH
+return Origin.LIVE
I2 planning/duplicates.py: `ignore` and a rename make a second export
-(*matching.unmanaged, *matching.ignored, *claimed, *undecided)
+(*matching.unmanaged, *claimed, *undecided)
I4 planning/duplicates.py: an object to delete is called unmanaged
-stays = [item for item in items if item.identity not in draft.deleted]
+stays = items
N11 planning/duplicates.py: an ignored object that was applied is doubled
-matching.replaced.get(match.resource.address) if match.live is None else None
+None
I1 planning/guards.py: a rename in the service makes a second export
-    possible_duplicate,
I6 rename planning/guards.py: an object of another tool loses its name
-    name_of_another_tool,
D1 inside planning/guards.py: a project is deleted with kept, ignored or unmanaged exports
-    lost_with_parent,
D7 planning/guards.py: an environment without resources deletes
-    nothing_declared,
N8 planning/guards.py: a move that was cut short is not refused
-    left_by_move,
N12 planning/guards.py: a move that was cut short deletes a protected object
-inventory.by_object.get((kind.name, change.live_id or ""), address)
+address
N2 planning/inventory.py: a removed object is deleted although HEAD lacks its commit
-: entry.behind,
+: False,
N3 planning/inventory.py: a removed object is deleted under another name
-live.name.strip() != was.name,
+False,
N4 planning/inventory.py: a removed object is deleted although another file declares it
-self.elsewhere.get(address, "")
+""
N5 planning/inventory.py: secrets that changed are not sent
-resend=entry.secrets != self.hashes.get(address)
+resend=False
N9 planning/inventory.py: what was left stays in the inventory
-if at in leaving or (at.kind, entry.id) in held
+if (at.kind, entry.id) in held
N13 planning/inventory.py: entries that do not count stay with the object of another address
-in self.every.items()
-            if at in leaving
+in self.entries.items() if at in leaving
F5 planning/match.py: of two former names that are both live, the first is taken
-self._renamable(start, {item.id: item for item in objects}.values())
+self._renamable(start, {item.id: item for item in objects}.values())[:1]
N1 planning/match.py: an entry counts although its commit does not declare it so
-(inventory or Inventory()).counted(live)
+inventory or Inventory()
N7 planning/match.py: a recorded object is renamed beside one of the declared name
-return [live, *(item for item in self._free_named(start) if item.id not in recorded)]
+return [live]
O3 planning/notes.py: removed protection is invisible
-in sorted(texts.items(), key=
+in sorted((), key=
D3 files/resource_files.py: a sparse checkout deletes what it leaves out
-if repository.is_sparse:
+if False:
G2 files/layers.py: defaults of a file do not apply
-own = [] if document.file == WORKSPACE_FILE else [document]
+own = []
D10 schemas/destinations/HTTP.schema.json: a missing token of HTTP is not refused
-"required": [
-        "token"
-      ]
+"required": []
"""
"""Each is a name, the file, what is wrong then; texts of the file, and those in their place."""
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


def faults() -> Iterator[tuple[str, Path, str, str, str]]:
    """Yield the parts of each fault."""
    fault = r"^(\w.*) (\S+\.\w+): (.+)\n((?:-.*\n)+)((?:\+.*\n)?)"
    for name, file, what, *texts in re.findall(fault, FAULTS, re.MULTILINE):
        path = Path(file if file.startswith("schemas/") else f"reconciler/{file}")
        old, new = (re.sub("^[-+]", "", text, flags=re.MULTILINE)[:-1] for text in texts)
        yield name, path, what, old, new


def main(names: list[str]) -> None:
    """Print a line for each fault."""
    with TemporaryDirectory() as folder, chdir(copied(Path(folder))):
        for name, path, what, old, new in faults():
            if not names or name.split()[0] in names:
                number, how = found_after(name, path, old, new)
                line = f"| {name} | {what} | {number or 'not found'} | {how[:160]}"
                sys.stdout.write(f"{line}\n")
                sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
