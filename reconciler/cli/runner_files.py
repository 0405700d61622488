"""The job summary and the outputs of a step of GitHub Actions: files that its runner names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from secrets import token_hex

from reconciler.errors import ReconcilerError
from reconciler.model.identity import plan_id
from reconciler.model.plan import Plan
from reconciler.model.workflow import safe_output
from reconciler.render.plan.totals import totals_of

SUMMARY_LIMIT = 1_024 * 1_024
"""Bytes of the summary of a step. GitHub discards a longer one."""
_SMALLEST = 4_096
"""Bytes that are left for another summary."""
_SUMMARY = "GITHUB_STEP_SUMMARY"
_OUTPUTS = "GITHUB_OUTPUT"


def write_runner_files(
    plan: Plan,
    markdown: Callable[[int], str],
    environ: Mapping[str, str],
    *,
    saved: Path | None = None,
) -> bool:
    """Append the outputs and the summary of a plan to the files that the runner names.

    `markdown` returns the plan in at most a number of characters, `saved` is the file of the plan.
    Return False if the summary of the step has no space left. Raises ReconcilerError.
    """
    if environ.get(_OUTPUTS):
        lines = "".join(_output(*item) for item in outputs_of(plan, saved).items())
        _append(Path(environ[_OUTPUTS]), lines.encode(errors="surrogateescape"))
    return not environ.get(_SUMMARY) or _summarized(Path(environ[_SUMMARY]), markdown)


def outputs_of(plan: Plan, saved: Path | None = None) -> dict[str, str]:
    """Return the outputs of a step by name."""
    totals = totals_of(plan)
    outputs = {
        "changes": str(not plan.empty).lower(),
        "to_add": str(totals.create),
        "to_change": str(totals.change),
        "to_destroy": str(totals.destroy),
        "plan_id": plan_id(plan),
    }
    return outputs if saved is None else {**outputs, "json_plan_path": str(saved)}


def _output(name: str, value: str) -> str:
    # A value cannot contain a delimiter that it does not know.
    end = f"end_{token_hex(16)}"
    return f"{name}<<{end}\n{value}\n{end}\n"


def _summarized(file: Path, markdown: Callable[[int], str]) -> bool:
    """Append the plan as far as it fits into what the step has left."""
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
