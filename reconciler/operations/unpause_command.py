"""`reconciler unpause`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from reconciler.cli.command import command, option
from reconciler.cli.streams import write_message, write_note
from reconciler.errors import BadUsage, ExitCode, Interrupted, ReconcilerError
from reconciler.operations.backfill_command import say_not_started, started
from reconciler.operations.toggling import pausing_options, toggled

if TYPE_CHECKING:
    from reconciler.model.change import Change
    from reconciler.operations.pausing import PauseRequest


EXAMPLES = (
    ("unpause lake", "Unpause an export; its skipped runs are not made up for"),
    ("unpause lake --backfill", "Unpause it, then backfill what the pause left out"),
)


@command("unpause", examples=EXAMPLES, page="docs/operations.md")
@pausing_options
@option("--backfill", is_flag=True, help="Then backfill what the pause left out.")
def unpause_command(names: tuple[str, ...], *, backfill: bool, **options: Any) -> int:
    """Unpause exports, after showing the plan and what the next apply does.

    NAME is an address, an id, a key, a name or a glob; it may name exports that no resource
    claims. With --backfill, the whole intervals that the pause left out are backfilled afterwards:
    they are shown and approved like those of `backfill --since-pause`.
    """
    from reconciler.model.action import Action

    if backfill and options["output_format"] == "json":
        raise BadUsage("--backfill does not support --format json")
    paused, request, code = toggled(Action.UNPAUSE, names, options)
    if not backfill:
        return code
    applied = paused.applied
    # Also those that are unpaused already: an earlier command may have ended before its backfill.
    left = [change for change in applied.plan.changes if change.action is Action.NO_OP]
    left += [end.change for end in applied.ended.report.done]
    if code == ExitCode.FINE and left:
        return _backfilled(left, request)
    for change in left:
        # The next unpause finds nothing to do, and so starts no backfill.
        say_not_started(change.address)
    return code


def _backfilled(changes: Sequence[Change], request: PauseRequest) -> int:
    """Backfill what the pauses of exports left out, and return the exit code."""
    from reconciler.operations.backfills import BackfillRequest
    from reconciler.render.progress import error_as_text

    try:
        return started(
            BackfillRequest(
                request.workspace,
                tuple(change.live_id or "" for change in changes),
                since_pause=True,
                auto_approve=request.auto_approve,
                can_ask=request.can_ask,
                outputs=request.outputs,
            )
        )
    except BadUsage as error:
        write_note(f"nothing to backfill: {error.message}\n")
        return ExitCode.FINE
    except ReconcilerError as error:
        write_message(error_as_text(error))
        for change in changes:
            say_not_started(change.address)
        is_stop = isinstance(error, Interrupted)
        return ExitCode.INTERRUPTED if is_stop else ExitCode.PARTLY_APPLIED
