"""The job summary and the outputs of a step of GitHub Actions: files that its runner names."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING

from msgspec.structs import replace

from reconciler.commands.streams import write_message
from reconciler.errors import ReconcilerError
from reconciler.model.text import safe_output
from reconciler.render import writer_of
from reconciler.render.options import RenderOptions

if TYPE_CHECKING:
    from reconciler.model.plan import Plan

SUMMARY_LIMIT = 1_024 * 1_024
"""Bytes of the summary of a step. GitHub discards a longer one."""
_SMALLEST = 4_096
"""Bytes that are left for another summary."""


def write_runner_files(plan: Plan, options: RenderOptions, *, saved: Path | None = None) -> None:
    """Append the outputs and the summary of a plan to the files that the runner names.

    `saved` is the file of the plan. Raises ReconcilerError.
    """
    write = writer_of("markdown", "plan")
    outputs, summary = os.environ.get("GITHUB_OUTPUT"), os.environ.get("GITHUB_STEP_SUMMARY")
    if outputs:
        lines = ""
        for name, value in outputs_of(plan, saved).items():
            # A value cannot contain a delimiter that it does not know.
            end = f"end_{token_hex(16)}"
            lines += f"{name}<<{end}\n{value}\n{end}\n"
        _append(Path(outputs), lines.encode(errors="surrogateescape"))
    if summary and not _summarized(
        Path(summary), lambda limit: write(plan, replace(options, limit=limit))
    ):
        write_message("warning: the job summary of this step is full; the plan is not in it\n")


def outputs_of(plan: Plan, saved: Path | None = None) -> dict[str, str]:
    """Return the outputs of a step by name."""
    from reconciler.render.plan_entries import totals_of

    totals = zip(("to_add", "to_change", "to_destroy"), totals_of(plan), strict=True)
    outputs = {"changes": str(not plan.empty).lower()}
    outputs |= {name: str(number) for name, number in totals} | {"plan_id": plan.plan_id}
    return outputs if saved is None else {**outputs, "json_plan_path": str(saved)}


def _summarized(file: Path, markdown: Callable[[int], str]) -> bool:
    """Append the plan as far as it fits into what the step has left. Return False if it is full."""
    space = SUMMARY_LIMIT - (file.stat().st_size if file.exists() else 0) - 1
    if space < _SMALLEST:
        return False
    limit = space
    while len(text := safe_output(markdown(limit)).encode()) > space:
        # Characters outside of ASCII have several bytes.
        limit = min(limit * space // len(text), limit - 1)
    _append(file, text + b"\n")
    return True


def _append(file: Path, content: bytes) -> None:
    try:
        with file.open("ab") as stream:
            stream.write(content)
    except OSError as error:
        raise ReconcilerError(f"{file} can't be written: {error.strerror}") from None
