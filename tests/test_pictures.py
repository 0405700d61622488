"""The pictures of the documentation show real runs, load nothing and are small."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as ET

from scripts.pictures import PICTURES, TERMINAL, command_and_plan, scenario, terminal
from tests.conftest import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
MOST_BYTES = 300_000


def test_the_terminal_shows_what_a_plan_prints(golden: Callable[[Path, str], None]) -> None:
    """After a change of the text of plans, run scripts/pictures.py."""
    with scenario() as plan:
        golden(TERMINAL, terminal(command_and_plan(plan)))


def test_the_terminal_loads_nothing() -> None:
    elements = list(ET.parse(TERMINAL).getroot().iter())  # noqa: S314 - a file of this repository
    assert {element.tag.rpartition("}")[2] for element in elements} == {
        "svg",
        "rect",
        "text",
        "tspan",
    }
    attributes = {name for element in elements for name in element.attrib}
    assert not attributes & {"href", "src", "style"}


def test_every_picture_is_shown_with_a_description() -> None:
    shown = [
        (page.parent / path, description)
        for page in PAGES
        for description, path in re.findall(r"!\[([^\]]*)\]\(([^)]+)\)", page.read_text("utf-8"))
    ]
    assert {path.resolve() for path, _ in shown} == set(PICTURES.glob("*.*g"))
    assert all(len(description) > 20 for _, description in shown)


def test_the_pictures_are_small() -> None:
    sizes = [picture.stat().st_size for picture in PICTURES.glob("*.*g")]
    assert len(sizes) >= 1
    assert sum(sizes) < MOST_BYTES
