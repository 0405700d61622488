"""An answer is the object that was asked for, or an error."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.errors import InvalidResponse
from reconciler.model.live import Routes
from reconciler.service.live import live_object
from tests.support.worlds import BY_NAME

PROJECT, EXPORT = BY_NAME["project"], BY_NAME["batch_export"]
BODY = {"id": "e1", "name": "Lake", "team_id": 2}


def export_of(body: Any, expected_id: str | None = "e1", parent_id: str | None = None) -> Any:
    return live_object(
        Routes(EXPORT, "o", parent_id),
        body,
        expected_id=expected_id,
        complete=True,
        label="GET /api/exports/e1/",
    )


def test_an_object_has_its_id_name_and_parent_as_text() -> None:
    live = export_of(BODY)
    assert (live.kind, live.id, live.name, live.parent_id) == ("batch_export", "e1", "Lake", "2")
    assert live.complete
    assert export_of(BODY, None) == live


def test_an_object_of_the_organization_has_no_parent() -> None:
    body = {"id": 7, "name": "Web"}
    live = live_object(Routes(PROJECT, "o"), body, expected_id="7", complete=False, label="GET /")
    assert (live.id, live.parent_id, live.complete) == ("7", None, False)


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (None, "the response is empty, an object was expected"),
        ([], "the response is a list, an object was expected"),
        ([BODY], "the response is a list, an object was expected"),
        ("Lake", 'the response is "Lake", an object was expected'),
        (5, "the response is 5, an object was expected"),
        ({}, "id is missing, a number or text was expected"),
        ({**BODY, "id": None}, "id is null, a number or text was expected"),
        ({**BODY, "id": True}, "id is true, a number or text was expected"),
        ({**BODY, "id": 1.0}, r"id is 1\.0, a number or text was expected"),
        ({**BODY, "id": "e1/../e2"}, "id is .*, a number or text was expected"),
        ({**BODY, "id": "e2"}, "id is e2, e1 was expected"),
        ({"id": "e1", "team_id": 2}, "name is missing, text was expected"),
        ({**BODY, "name": None}, "name is null, text was expected"),
        ({**BODY, "name": ["Lake"]}, "name is a list, text was expected"),
        ({"id": "e1", "name": "Lake"}, "team_id is missing, a number was expected"),
        ({**BODY, "team_id": None}, "team_id is null, a number was expected"),
        ({**BODY, "team_id": {"id": 2}}, "team_id is an object, a number was expected"),
    ],
)
def test_f1_an_answer_of_another_shape_or_object_is_an_error(body: Any, problem: str) -> None:
    with pytest.raises(InvalidResponse, match=f"^GET /api/exports/e1/: {problem}") as error:
        export_of(body)
    assert error.value.hint is not None


def test_the_parent_of_an_object_is_its_own_field_or_the_path() -> None:
    without = {name: value for name, value in BODY.items() if name != "team_id"}
    assert export_of(without, parent_id="7").parent_id == "7"
    assert export_of(BODY, parent_id="2").parent_id == "2"
    with pytest.raises(InvalidResponse, match="team_id is 2, 7 was expected"):
        export_of(BODY, parent_id="7")
    with pytest.raises(InvalidResponse, match="team_id is null, a number was expected"):
        export_of({**BODY, "team_id": None}, parent_id="7")
