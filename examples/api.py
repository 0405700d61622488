"""Apply a workspace unless that loses data, then close the gaps of its exports.

Usage: api.py FOLDER [ENVIRONMENT]
"""

import sys
from collections.abc import Sequence

from reconciler import api
from reconciler.errors import ReconcilerError


def loses_nothing(plan: api.Plan) -> bool:
    """Return whether a plan deletes and replaces nothing."""
    return not any(change.action.destructive for change in plan.effective)


async def reconcile(workspace: api.Workspace) -> None:
    """Plan, apply, and backfill what is missing."""
    planned = await api.plan(workspace)
    print(f"changes: {len(planned.plan.effective)}")
    if not planned.plan.empty:
        applied = await api.apply(workspace, approve=loses_nothing)
        print(f"verified: {applied.verification.passed}")

    states = await api.status(workspace)
    for export in states.exports:
        print(f"{export.address} {export.name}: {export.state}")

    report = await api.gaps(workspace)
    for item in report.objects:
        if any(gap.state.repairable for gap in item.gaps):
            ended = await api.backfill(
                workspace,
                [str(item.address)],
                api.ClosedGaps(),
                approve=lambda plan: len(plan.backfills) <= 10,
            )
            print(f"{item.address}: started backfills: {len(ended.ends)}")


def main(arguments: Sequence[str]) -> int:
    """Run the example and return its exit code."""
    folder, environment = arguments[0], arguments[1] if len(arguments) > 1 else None
    try:
        api.run(reconcile(api.Workspace(folder, environment)))
    except ReconcilerError as error:
        print(f"error: {error.message}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
