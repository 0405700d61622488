"""Workflow annotations: placed in the repository, errors first, one command a diagnostic."""

from __future__ import annotations

from reconciler.errors import Diagnostic, Mark, Severity
from reconciler.render.formats.github import diagnostics_as_github
from tests.unit.render.test_diagnostics import breaking, hostile, wrong


def warning(message: str, at: Mark | None = None) -> Diagnostic:
    return wrong(message, at, severity=Severity.WARNING)


def test_errors_come_first_and_the_log_ends_with_the_count() -> None:
    found = [
        warning("doubtful", Mark("a.yaml", 1, 2, 3)),
        wrong("wrong", Mark("b.yaml", 4, 5, 6), hint="mend it"),
    ]
    assert diagnostics_as_github(found) == (
        "::error file=b.yaml,line=4,col=5,endColumn=11,title=unknown-field::wrong%0Amend it\n"
        "::warning file=a.yaml,line=1,col=2,endColumn=5,title=unknown-field::doubtful\n"
        "1 error, 1 warning in 2 files\n"
    )
    assert diagnostics_as_github([]) == ""


def test_paths_start_at_the_root_of_the_repository() -> None:
    found = wrong(at=Mark("a.yaml"), related=((Mark("b.yaml", 7), "the other one"),))
    told = diagnostics_as_github([found], root="infra/pipelines")
    assert "::error file=infra/pipelines/a.yaml,line=1," in told
    assert "%0Ainfra/pipelines/b.yaml:7:1: the other one\n" in told


def test_what_has_no_place_has_a_title() -> None:
    assert diagnostics_as_github([wrong("x")]).startswith("::error title=unknown-field::x\n")


def test_text_can_not_begin_a_command_or_end_a_property() -> None:
    forged = wrong("100%0A::error::x\r\n::add-mask::y", Mark("a,line=1:b%.yaml"))
    told = diagnostics_as_github([hostile(), forged])
    assert len(told.splitlines()) == 3
    assert not breaking(told)
    assert "100%250A::error::x\\r\\n::add-mask::y" in told
    assert "file=a%2Cline=1%3Ab%25.yaml,line=1," in told
