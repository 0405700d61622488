"""`reconciler runs`."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from reconciler.cli import completing
from reconciler.cli.command import command, option
from reconciler.cli.options import (
    client_options,
    format_option,
    links_option,
    log_option,
    workspace_of,
    workspace_options,
)
from reconciler.cli.output import render_options, style_of
from reconciler.cli.streams import write_note, write_result, write_update
from reconciler.errors import BadUsage, ExitCode
from reconciler.model.moments import Moment, moment_or_ago
from reconciler.model.run_report import STATUSES, RunOrder
from reconciler.model.text import printable
from reconciler.render.style import Style

if TYPE_CHECKING:
    from reconciler.commands.runtime import Runtime


EXAMPLES = (
    ("runs lake", "The newest 20 runs of an export"),
    ("runs lake 0192e6b2-45d1-0000-5f2b-7c1a2b3c4d5e", "Everything about one run"),
    ("runs '*' --failed --retry", "Retry what failed in every export, with one approval"),
)
_ONLY_RETRY = ("failed", "wait", "dry_run", "auto_approve", "log_file")
_retry_option = partial(option, is_flag=True, group="Retry and cancel")


@command("runs", examples=EXAMPLES, page="docs/operations.md")
@click.argument("name", shell_complete=completing.resources)
@click.argument("run", required=False)
@workspace_options
@option("--since", metavar="TIME", help="Since a time, ISO 8601, or a duration ago: 6h, 7d.")
@option("--until", metavar="TIME", help="Until a time, or a duration ago.")
@option(
    "--order",
    type=click.Choice([order.value for order in RunOrder]),
    default=RunOrder.CREATED.value,
    show_default=True,
    help="By when runs began, or by their intervals.",
)
@option(
    "--status",
    "statuses",
    multiple=True,
    type=click.Choice(STATUSES, case_sensitive=False),
    metavar="STATUS",
    help=f"Only runs in these statuses: {', '.join(STATUSES)}.",
)
@option("--limit", type=click.IntRange(min=1), default=20, show_default=True, help="Most runs.")
@option("--all", "everything", is_flag=True, help="All runs, page by page.")
@option("--follow", is_flag=True, help="Continue with new runs and changes of status.")
@_retry_option("--retry", help="Export the interval of RUN again.")
@_retry_option("--failed", help="With --retry: of every run that failed, in the last seven days.")
@_retry_option("--cancel", "cancelled", help="Cancel RUN.")
@_retry_option("--wait", help="With --retry: wait until the runs ended, and report them.")
@_retry_option("--dry-run", help="With --retry: show the retries, and send nothing.")
@_retry_option("--auto-approve", help="With --retry: do not ask for approval.")
@log_option("--log-file", "With --retry: append an audit log, JSON lines.")
@format_option("runs")
@links_option
@client_options
def runs_command(
    name: str, run: str | None, output_format: str, *, follow: bool, links: bool, **options: Any
) -> ExitCode:
    """Show the runs of an export, the newest first, or everything about one RUN.

    NAME is an address, an id, a key, a name or a glob of one export. With --failed, it can be a
    glob of several. Times without an offset are UTC. With --follow and a RUN it ends when the run
    has ended; json then prints a line for each change. With --retry it exits with 3 if a retry was
    not started or did not complete.
    """
    _check_action(run, follow=follow, options=options)
    if options["cancelled"]:
        return _cancel(name, run or "", options)
    if options["retry"]:
        return _retry(name, run, output_format, options)
    from reconciler.cli.running import show_report
    from reconciler.operations.running import RunsRequest, follow_runs, runs
    from reconciler.render.runs import change_as_text

    request = RunsRequest(
        workspace_of(options),
        name,
        run,
        *window_of(options),
        order=RunOrder(options["order"]),
        statuses=options["statuses"],
        limit=None if options["everything"] else options["limit"],
    )
    if not follow:
        show_report("runs", output_format, partial(runs, request), render_options(links=links))
        return ExitCode.FINE
    check_follow(output_format, request.last)
    follow_shown(partial(follow_runs, request), output_format, change_as_text)
    return ExitCode.FINE


def _check_action(run: str | None, *, follow: bool, options: dict[str, Any]) -> None:
    """Raise BadUsage for options of --retry and --cancel that are missing or exclude each other."""
    retry, cancelled = options["retry"], options["cancelled"]
    if retry and cancelled:
        raise BadUsage("--retry and --cancel exclude each other")
    if (retry or cancelled) and follow:
        raise BadUsage("--follow shows runs: omit --retry and --cancel")
    if cancelled and run is None:
        raise BadUsage("--cancel needs a RUN", hint="list them with: reconciler runs NAME")
    if retry and (run is None) is not options["failed"]:
        raise BadUsage("--retry needs either a RUN or --failed")
    given = [name for name in _ONLY_RETRY if options[name]]
    if given and not retry:
        raise BadUsage(f"--{given[0].replace('_', '-')} needs --retry")


def _retry(name: str, run: str | None, output_format: str, options: dict[str, Any]) -> ExitCode:
    from reconciler.commands.recording import Outputs
    from reconciler.operations.backfill_command import started
    from reconciler.operations.backfills import BackfillRequest, Retries

    if output_format not in ("text", "json"):
        raise BadUsage(f"--retry does not support --format {output_format}")
    is_json = output_format == "json"
    request = BackfillRequest(
        workspace_of(options),
        (name,),
        retries=Retries(run, *window_of(options)),
        wait=options["wait"],
        dry_run=options["dry_run"],
        auto_approve=options["auto_approve"],
        can_ask=sys.stdin.isatty() and not is_json,
        outputs=Outputs(options["log_file"]),
    )
    return started(request, is_json=is_json)


def _cancel(name: str, run: str, options: dict[str, Any]) -> ExitCode:
    import shlex

    from reconciler.cli import signals
    from reconciler.cli.running import runtime
    from reconciler.operations.cancelling import cancel_run

    world = runtime()
    begin = partial(signals.stop_on_signals, world.stop)
    address = signals.run(cancel_run(name, run, workspace_of(options), world, begin))
    words = shlex.join(["reconciler", "runs", str(address), run, "--retry"])
    write_result(f"cancelled run {printable(run)}; its interval is not exported\n")
    write_note(f"export it with: {printable(words)}\n")
    return ExitCode.FINE


def window_of(options: dict[str, Any]) -> tuple[Moment | None, Moment | None]:
    """Return the times of --since and --until. Raises BadUsage."""
    first, last = (
        None if text is None else moment_or_ago(text, option=f"--{name}")
        for name, text in (("since", options.pop("since")), ("until", options.pop("until")))
    )
    return first, last


def follow_shown(
    work: Callable[[Runtime, Callable[[Any], None]], Awaitable[None]],
    output_format: str,
    as_text: Callable[[Any, Style], str],
) -> None:
    """Run a use case that reports values one by one, and print a line for each."""
    from reconciler.cli.running import run_shown, runtime
    from reconciler.model.public import as_json
    from reconciler.model.redaction import masked_in

    world, style = runtime(), style_of(sys.stdout)

    def listen(value: Any) -> None:
        shown = masked_in(value, world.mask)
        is_json = output_format == "json"
        write_update(as_json(shown, indent=False) if is_json else as_text(shown, style))

    run_shown(lambda world: work(world, listen), world)


def check_follow(output_format: str, last: Moment | None) -> None:
    """Raise BadUsage for options that exclude --follow."""
    if last is not None:
        raise BadUsage("--follow and --until exclude each other")
    if output_format not in ("text", "json"):
        raise BadUsage(f"--follow does not support --format {output_format}")
