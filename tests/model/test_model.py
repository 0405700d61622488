"""The real commands do in random worlds what the documents say.

A failure names its seed and dialect: `tests.model.comparing.reproduced(SEED, DIALECT)`.
"""

from __future__ import annotations

import pytest

from tests.model.worlds import disagreements
from tests.support.limits import LONG

WORLDS = 6_000 if LONG else 60
CHUNK = 500 if LONG else 20


@pytest.mark.parametrize("first", range(0, WORLDS, CHUNK))
def test_commands_do_what_the_model_of_the_documents_says(first: int) -> None:
    numbers = range(first, min(first + CHUNK, WORLDS))
    problems = [text for _, text in disagreements(numbers)]
    assert not problems, "\n".join(problems)
