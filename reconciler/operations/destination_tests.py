"""Run the steps with which the service tests a destination (docs/service.md, 11).

The service really connects to the destination. Nothing is saved.
"""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.errors import InvalidResponse, NotFound
from reconciler.model.preflight import StepResult, StepStatus
from reconciler.model.values import JSON, JSONObject
from reconciler.reading.calls import ObjectCalls

_BY_WORD = {status.value: status for status in StepStatus}


async def count_steps(calls: ObjectCalls, tag: str) -> int:
    """Return how many steps a type of destination has, 0 for a type without a test.

    Raises NotOffered, ServiceError.
    """
    try:
        body = await calls.send("test_steps", query={"destination": tag})
    except NotFound:
        return 0
    steps = body.get("steps") if isinstance(body, Mapping) else None
    if not isinstance(steps, list):
        raise InvalidResponse("the list of test steps has another form")
    return len(steps)


async def run_steps(
    calls: ObjectCalls, body: JSONObject, count: int, *, is_new: bool
) -> tuple[StepResult, ...]:
    """Run the steps one after another, up to the first failure.

    `body` is that of a create, with references in place of secrets. Raises NotOffered,
    ServiceError.
    """
    name = "run_test_step_new" if is_new else "run_test_step"
    steps: list[StepResult] = []
    for number in range(count):
        steps.append(_step(await calls.send(name, body={**body, "step": number})))
        if steps[-1].status is StepStatus.FAILED:
            break
    return tuple(steps)


def _step(body: JSON) -> StepResult:
    """Return the result of a step: a failure is a 200 as well (docs/service.md, 15.65)."""
    result = body.get("result") if isinstance(body, Mapping) else None
    status = (
        _BY_WORD.get(str(result.get("status")).lower()) if isinstance(result, Mapping) else None
    )
    if not isinstance(body, Mapping) or not isinstance(result, Mapping) or status is None:
        raise InvalidResponse("the result of a test step has another form")
    message = result.get("message")
    return StepResult(str(body.get("name")), status, message if isinstance(message, str) else None)
