"""Apply a workspace unless that loses data, then close the gaps of its exports.

Usage: api.py FOLDER [ENVIRONMENT]
"""

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

import reconciler


async def loses_nothing(plan: reconciler.Plan) -> bool:
    """Return whether a plan deletes and replaces nothing."""
    return not any(change.action.destructive for change in plan.effective)


async def few(plan: reconciler.BackfillPlan) -> bool:
    """Return whether a plan has at most ten backfills."""
    return len(plan.backfills) <= 10


async def reconcile(workspace: reconciler.Workspace) -> None:
    """Plan, apply, and backfill what is missing."""
    planned = await reconciler.plan(workspace)
    print(f"changes: {len(planned.plan.effective)}")
    if not planned.plan.empty:
        applied = await reconciler.apply(workspace, approve=loses_nothing)
        print(f"verified: {applied.verification.passed}")

    states = await reconciler.status(workspace)
    for export in states.report.exports:
        print(f"{export.address} {export.name}: {export.state}")

    missing = await reconciler.gaps(workspace)
    for item in missing.report.objects:
        if any(gap.state.repairable for gap in item.gaps):
            names = [str(item.address)]
            ended = await reconciler.backfill(
                workspace, names, reconciler.ClosedGaps(), approve=few
            )
            print(f"{item.address}: started backfills: {len(ended.ends)}")


def main(arguments: Sequence[str]) -> int:
    """Run the example and return its exit code."""
    folder, environment = arguments[0], arguments[1] if len(arguments) > 1 else None
    try:
        asyncio.run(reconcile(reconciler.Workspace(Path(folder), environment)))
    except reconciler.ReconcilerError as error:
        print(f"error: {error.message}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
