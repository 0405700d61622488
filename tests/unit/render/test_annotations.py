"""Test workflow annotations."""

from __future__ import annotations

from reconciler.diagnostics import Diagnostic, Level, Mark
from reconciler.render.ci_reports import diagnostics_as_github
from reconciler.render.options import RenderOptions
from tests.unit.render.test_diagnostics import breaking, hostile, wrong


def warning(message: str, at: Mark | None = None) -> Diagnostic:
    return wrong(message, at, level=Level.WARNING)


def test_errors_come_first_and_counts_last() -> None:
    diagnostics = [
        warning("doubtful", Mark("a.yaml", 1, 2, 3)),
        wrong("wrong", Mark("b.yaml", 4, 5, 6), hint="fix it"),
    ]
    assert diagnostics_as_github(diagnostics) == (
        "::error file=b.yaml,line=4,col=5,endColumn=11,title=unknown-field::wrong%0Ahint: fix it\n"
        "::warning file=a.yaml,line=1,col=2,endColumn=5,title=unknown-field::doubtful\n"
        "1 error, 1 warning in 2 files\n"
    )
    assert diagnostics_as_github([]) == ""


def test_paths_are_relative_to_the_root_of_the_repository() -> None:
    diagnostic = wrong(at=Mark("a.yaml"), related=((Mark("b.yaml", 7), "the other one"),))
    text = diagnostics_as_github([diagnostic], RenderOptions(root="infra/pipelines"))
    assert "::error file=infra/pipelines/a.yaml,line=1," in text
    assert "%0Ainfra/pipelines/b.yaml:7:1: the other one\n" in text


def test_a_diagnostic_without_a_place_has_a_title() -> None:
    assert diagnostics_as_github([wrong("x")]).startswith("::error title=unknown-field::x\n")


def test_text_cannot_start_a_command_or_end_a_property() -> None:
    forged = wrong("100%0A::error::x\r\n::add-mask::y", Mark("a,line=1:b%.yaml"))
    text = diagnostics_as_github([hostile(), forged])
    assert len(text.splitlines()) == 3
    assert not breaking(text)
    assert "100%250A::error::x\\r\\n::add-mask::y" in text
    assert "file=a%2Cline=1%3Ab%25.yaml,line=1," in text
