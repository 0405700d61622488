"""The mutations of `tests/mutations.py` are what their rules say."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutations import changed, described, drawn, places, sites
from tests.support.cli import write

TWO_GUARDS = """\
def f(a):
    if a:
        return 1.5

    if a > 7:
        raise ValueError(a)
    return None
"""


@pytest.mark.parametrize(
    ("text", "mutations"),
    [
        ("x = a == b\n", ["comparison: x = (a != b)\n"]),
        ("x = a < b <= c\n", ["comparison: x = (a <= b <= c)\n", "comparison: x = (a < b < c)\n"]),
        ("x = a in b\n", ["comparison: x = (a not in b)\n"]),
        ("x = a and b\n", ["and-or: x = (a or b)\n"]),
        ("x = not (a or b)\n", ["not: x = (a or b)\n", "and-or: x = not ((a and b))\n"]),
        ("x = a if b else c\n", ["guard: x = (c if b else a)\n"]),
        ("x = 'é', 7\n", ["constant: x = ('é_'), 7\n", "constant: x = 'é', (8)\n"]),
        ("x = True\n", ["constant: x = (False)\n"]),
        ("a(b)\n", ["statement: pass\n"]),
        ("x.y = z\n", ["statement: pass\n"]),
        ("x += z\n", ["statement: pass\n"]),
        ("x = f'{a}', 'two words', None\n", []),
        ("if TYPE_CHECKING:\n    x = 1\n", []),
        ("X: TypeAlias = 'Y'\n", []),
        ("class A(B, frozen=True):\n    'Doc.'\n    x: 'Y'\n", []),
        ("def f(a: 'A') -> 'B':\n    'Doc.'\n    return a\n", []),
    ],
)
def test_a_rule_changes_what_it_says(text: str, mutations: list[str]) -> None:
    made = [f"{site.rule}: {changed(text, site)}" for site in sites(text)]
    assert sorted(made) == sorted(mutations)


def test_guards_are_deleted_and_swapped() -> None:
    made = {site.rule: [] for site in sites(TWO_GUARDS)}
    for site in sites(TWO_GUARDS):
        made[site.rule].append((site.lines, changed(TWO_GUARDS, site)))
    first = "    if a:\n        return 1.5\n"
    second = "    if a > 7:\n        raise ValueError(a)\n"
    assert made["statement"] == [
        (range(2, 4), TWO_GUARDS.replace(first, "    pass\n")),
        (range(5, 7), TWO_GUARDS.replace(second, "    pass\n")),
    ]
    swapped = f"def f(a):\n{second}\n{first}    return None\n"
    assert made["guard"] == [(range(1, 7), swapped)]


def test_a_seed_is_one_mutation_and_its_line_another_in_changed_code(tmp_path: Path) -> None:
    write(tmp_path, {"reconciler/kinds/a.py": TWO_GUARDS, "reconciler/planning/b.py": "x = 1 < y"})
    made = [drawn(places(tmp_path), seed) for seed in range(20)]
    assert made == [drawn(places(tmp_path), seed) for seed in range(20)]
    assert {site.path for site in made} == {"reconciler/kinds/a.py", "reconciler/planning/b.py"}
    printed = "reconciler/planning/b.py:1 comparison: 1 < y -> (1 <= y)"
    assert printed in map(str, made)

    line = f"7 | {printed} | SURVIVED 3 tests"
    text = "y = 1 < y\n\nx = 1 <   y\n"
    (tmp_path / "reconciler/planning/b.py").write_text(f"{text}\n{text}")
    assert str(described(places(tmp_path), line)).startswith("reconciler/planning/b.py:1 ")
    nearer = str(described(places(tmp_path), line.replace("b.py:1 ", "b.py:4 ")))
    assert nearer.startswith("reconciler/planning/b.py:3 ")
    elsewhere = line.replace("b.py", "moved.py")
    assert described(places(tmp_path), elsewhere) is None
    (tmp_path / "reconciler/planning/b.py").write_text("x = 2\ny = 1 < y")
    assert str(described(places(tmp_path), elsewhere)).startswith("reconciler/planning/b.py:2 ")
    assert described(places(tmp_path), line.replace("<=", "!=")) is None
