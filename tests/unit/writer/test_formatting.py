"""`fmt`: order, comments, and that no file is ever damaged."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.authoring.formatting import format_file, format_workspace
from reconciler.diagnostics import DiagnosticCollector, InvalidConfiguration
from reconciler.workspace.yaml.loader import parse
from tests.conftest import ROOT
from tests.support.cli import write


def _text(text: str, file: str, problems: DiagnosticCollector) -> str | None:
    _, after = format_file(text.encode(), file, problems)
    return after.text if after is not None else None


def formatted(text: str, file: str = "exports.yaml") -> str:
    problems = DiagnosticCollector()
    found = _text(text, file, problems)
    assert not problems.diagnostics
    assert found is not None
    assert _text(found, file, problems) == found
    return found


def test_fields_stand_in_the_order_of_the_schema() -> None:
    assert (
        formatted(
            "batch_exports:\n"
            "  lake:\n"
            "    lifecycle: {protect: true}\n"
            "    destination:\n"
            "      config:\n"
            "        prefix: p\n"
            "        bucket_name: b\n"
            "      type: S3\n"
            "    name: Lake\n"
            "    project: web\n"
        )
        == "batch_exports:\n"
        "  lake:\n"
        "    project: web\n"
        "    name: Lake\n"
        "    destination:\n"
        "      type: S3\n"
        "      config:\n"
        "        bucket_name: b\n"
        "        prefix: p\n"
        "    lifecycle: {protect: true}\n"
    )


def test_comments_move_with_the_key_below_them() -> None:
    assert (
        formatted(
            "projects:\n"
            "  web:\n"
            "    # all of Europe\n"
            "    timezone: UTC  # for now\n"
            "    # what people see\n"
            "    name: Web\n"
            "    # the end of web\n"
            "  # the other one\n"
            "  app: {name: App}\n"
            "# the end\n"
        )
        == "projects:\n"
        "  web:\n"
        "    # what people see\n"
        "    name: Web\n"
        "    # all of Europe\n"
        "    timezone: UTC  # for now\n"
        "    # the end of web\n"
        "  # the other one\n"
        "  app: {name: App}\n"
        "# the end\n"
    )


def test_the_head_of_a_file_stays_at_its_top() -> None:
    text = (
        "# yaml-language-server: $schema=resources.json\n"
        "# exports\n"
        "batch_exports: {}\n"
        "# projects\n"
        "projects: {}\n"
    )
    assert formatted(text).splitlines() == [
        "# yaml-language-server: $schema=resources.json",
        "# projects",
        "projects: {}",
        "",
        "# exports",
        "batch_exports: {}",
    ]


def test_resources_keep_the_order_of_their_author() -> None:
    text = "projects:\n  b: {name: B}\n  a: {name: A}\n"
    assert formatted(text) == text


def test_unknown_fields_come_last_as_they_stood() -> None:
    text = "projects:\n  web:\n    zzz: 1\n    aaa: 2\n    name: Web\n"
    assert formatted(text) == "projects:\n  web:\n    name: Web\n    zzz: 1\n    aaa: 2\n"


def test_the_order_inside_open_objects_is_nobodys_business() -> None:
    text = "projects:\n  web:\n    extra_settings:\n      z: 1\n      a: 2\n"
    assert formatted(text) == text


def test_an_override_has_the_order_of_its_resource_and_its_type() -> None:
    text = (
        "batch_exports:\n"
        "  lake:\n"
        "    destination: {type: Snowflake}\n"
        "    overrides:\n"
        "      staging:\n"
        "        destination:\n"
        "          config:\n"
        "            role: r\n"
        "            warehouse: w\n"
        "        paused: true\n"
    )
    lines = [line.strip() for line in formatted(text).splitlines()]
    assert lines.index("paused: true") < lines.index("warehouse: w") < lines.index("role: r")


def test_indentation_goes_in_steps_of_two_and_blocks_of_text_keep_their_shape() -> None:
    text = (
        "batch_exports:\n"
        "      lake:\n"
        "          sql_query: |\n"
        "              select\n"
        "\n"
        "                # no comment\n"
        "                  event\n"
        "          destination:\n"
        "             config:\n"
        "                 include_events:\n"
        "                 - a\n"
        "                 -   b: 1\n"
        "                     c: 2\n"
    )
    assert (
        formatted(text) == "batch_exports:\n"
        "  lake:\n"
        "    sql_query: |\n"
        "      select\n"
        "\n"
        "        # no comment\n"
        "          event\n"
        "    destination:\n"
        "      config:\n"
        "        include_events:\n"
        "          - a\n"
        "          -   b: 1\n"
        "              c: 2\n"
    )


def test_a_comment_with_a_blank_line_below_it_stays_above_all_fields() -> None:
    text = (
        "batch_exports:\n"
        "  lake:\n"
        "    # Ask #data before touching.\n"
        "\n"
        "    # what people see\n"
        "    name: Lake\n"
        "    project: web\n"
    )
    assert formatted(text).splitlines()[2:] == [
        "    # Ask #data before touching.",
        "",
        "    project: web",
        "    # what people see",
        "    name: Lake",
    ]


def test_a_blank_line_stays_between_what_was_first_and_what_stands_there_now() -> None:
    text = "projects:\n  web:\n    timezone: UTC\n\n    name: Web\n"
    assert formatted(text) == "projects:\n  web:\n    name: Web\n\n    timezone: UTC\n"


def test_a_comment_below_a_block_of_text_never_becomes_part_of_it() -> None:
    text = (
        "batch_exports:\n"
        " lake:\n"
        "  sql_query: |\n"
        "      select 1\n"
        "      # text\n"
        "   # no text\n"
        "    # none either\n"
        "  name: Lake\n"
    )
    assert formatted(text).splitlines()[2:] == [
        "    name: Lake",
        "    sql_query: |",
        "      select 1",
        "      # text",
        "     # no text",
        "     # none either",
    ]


def test_an_item_that_is_commented_out_stays_in_its_list() -> None:
    text = (
        "projects:\n"
        "  web:\n"
        "    app_urls:\n"
        "    - https://a.example\n"
        "    # - https://b.example\n"
        "    # what people see\n"
        "    name: Web\n"
    )
    assert formatted(text).splitlines()[2:] == [
        "    # what people see",
        "    name: Web",
        "    app_urls:",
        "      - https://a.example",
        "      # - https://b.example",
    ]


def test_the_end_of_the_document_stays_at_the_end() -> None:
    text = "---\nbatch_exports: {}\nprojects:\n    web:\n        name: Web\n\n...\n# more\n\n"
    assert formatted(text) == (
        "---\nprojects:\n  web:\n    name: Web\n\nbatch_exports: {}\n...\n# more\n"
    )


def test_blanks_at_the_end_of_lines_stay_where_they_are_text() -> None:
    text = (
        "projects:  \n"
        "  web:\t\n"
        "    name: |  \n"
        "      two blanks  \n"
        "    timezone: 'a  \n"
        "      b'  \n"
        "    app_urls:\n"
        "      - x  \n"
    )
    assert formatted(text) == (
        "projects:\n"
        "  web:\n"
        "    name: |\n"
        "      two blanks  \n"
        "    timezone: 'a  \n"
        "      b'\n"
        "    app_urls:\n"
        "      - x\n"
    )


def test_each_resource_has_the_order_of_its_own_type() -> None:
    text = (
        "batch_exports:\n"
        "  a:\n"
        "    destination: {type: Snowflake}\n"
        "  b:\n"
        "    destination:\n"
        "      config:\n"
        "        role: r\n"
        "        warehouse: w\n"
    )
    assert formatted(text) == text


@pytest.mark.parametrize("tag", ["Nothing", "../project", '"\\0"', "1", "[S3]", f"{'x' * 5000}"])
def test_a_type_that_is_unknown_has_no_order(tag: str) -> None:
    text = (
        "batch_exports:\n  a:\n    destination:\n"
        f"      type: {tag}\n      config:\n        prefix: p\n        bucket_name: b\n"
    )
    assert formatted(text) == text


def test_a_file_that_would_change_its_meaning_is_reported_and_stays_unchanged() -> None:
    text = "batch_exports:\n  a:\n    sql_query: |\n      select 1"
    problems = DiagnosticCollector()
    assert _text(text, "f.yaml", problems) is None
    assert [each.code for each in problems.diagnostics] == ["not-formatted"]
    assert "end it with a line break" in (problems.diagnostics[0].hint or "")
    assert not problems.failed


def test_one_anchor_does_not_keep_other_resources_from_their_order() -> None:
    text = (
        "batch_exports:\n"
        "  a:\n"
        "    overrides: {x: &x {paused: true}}\n"
        "    filters: *x\n"
        "  b:\n"
        "    name: B\n"
        "    project: w\n"
    )
    assert formatted(text).splitlines()[2:] == [
        "    overrides: {x: &x {paused: true}}",
        "    filters: *x",
        "  b:",
        "    project: w",
        "    name: B",
    ]


@pytest.mark.parametrize("text", ["", "\n", "# only a comment\n", "{version: 1}\n", "- a\n", "x\n"])
def test_odd_files_are_left_as_they_are(text: str) -> None:
    assert formatted(text) == text.lstrip("\n")


@pytest.mark.parametrize("indicator", ["|", "|-", "|+", ">", ">-", ">+", "|2", "|+2"])
def test_blocks_of_text_keep_their_value(indicator: str) -> None:
    text = (
        "batch_exports:\n"
        "    lake:\n"
        f"        sql_query: {indicator}\n"
        "          first\n"
        "\n"
        "           second\n"
        "\n"
        "\n"
        "        name: Lake\n"
    )
    before = parse(text.encode(), "f", DiagnosticCollector()).value
    after = formatted(text)
    assert parse(after.encode(), "f", DiagnosticCollector()).value == before
    assert after.index("name:") < after.index("sql_query:")


def test_an_anchor_stays_above_its_alias() -> None:
    text = (
        "batch_exports:\n"
        "  lake:\n"
        "    overrides: &x\n"
        "      staging: {paused: true}\n"
        "    lifecycle: {}\n"
        "    filters: *x\n"
    )
    assert formatted(text) == text


def test_merge_keys_come_first() -> None:
    text = "batch_exports:\n  a: &a\n    model: m\n  b:\n    name: B\n    <<: *a\n    project: w\n"
    assert formatted(text).endswith("  b:\n    <<: *a\n    project: w\n    name: B\n")


def test_blank_lines_are_folded_and_the_end_is_one_line_break() -> None:
    text = "\n\nprojects:\n\n\n  web:\n\n    name: Web   \n\n\n\n    timezone: UTC\n\n\n"
    assert formatted(text) == "projects:\n  web:\n    name: Web\n\n    timezone: UTC\n"


def test_a_file_keeps_the_line_ends_of_its_first_line_and_loses_a_byte_order_mark() -> None:
    raw = b"\xef\xbb\xbfprojects:\r\n  web:\r\n    timezone: UTC  \n    name: Web"
    _, after = format_file(raw, "f.yaml", DiagnosticCollector())
    assert after is not None
    assert after.text == "projects:\r\n  web:\r\n    name: Web\r\n    timezone: UTC\r\n"


def test_the_workspace_file_is_formatted_too() -> None:
    text = (
        "environments:\n"
        "  staging:\n"
        "    policy: {}\n"
        "    base_url: https://x.example\n"
        "defaults:\n"
        "  batch_export:\n"
        "    paused: true\n"
        "    interval: hour\n"
        "version: 1\n"
    )
    lines = [line.strip() for line in formatted(text, "reconciler.yaml").splitlines() if line]
    assert lines == [
        "version: 1",
        "defaults:",
        "batch_export:",
        "interval: hour",
        "paused: true",
        "environments:",
        "staging:",
        "base_url: https://x.example",
        "policy: {}",
    ]


@pytest.mark.parametrize(
    "text",
    ["a: b: c\n", "projects: {web: {name: no}}\n", "projects:\n  a: {}\n  a: {}\n", "a:\n\t- b\n"],
)
def test_a_file_with_errors_is_told_and_left_alone(text: str) -> None:
    problems = DiagnosticCollector()
    assert _text(text, "f.yaml", problems) is None
    assert problems.failed


@pytest.mark.parametrize("path", sorted((ROOT / "examples").rglob("*.yaml")), ids=lambda p: p.name)
def test_examples_keep_every_line_and_value(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    after = formatted(text, path.name)
    assert sorted(filter(None, after.splitlines())) == sorted(filter(None, text.splitlines()))


def test_check_writes_nothing_and_format_writes_what_changed(tmp_path: Path) -> None:
    tidy = "projects:\n  app: {name: App}\n"
    untidy = "projects:\n  web:\n    timezone: UTC\n    name: Web\n"
    files = {"reconciler.yaml": "version: 1\n", "a.yaml": tidy, "b.yaml": untidy}
    write(tmp_path, files)
    told = format_workspace(tmp_path, write=False)
    assert list(told.changed) == ["b.yaml"]
    assert (tmp_path / "b.yaml").read_text() == untidy
    assert format_workspace(tmp_path).texts == told.texts
    assert (tmp_path / "b.yaml").read_text() == told.texts["b.yaml"]
    assert (tmp_path / "a.yaml").read_text() == tidy
    assert not format_workspace(tmp_path).changed


def test_one_bad_file_leaves_all_files_alone(tmp_path: Path) -> None:
    untidy = "projects:\n  web:\n    timezone: UTC\n    name: Web\n"
    write(
        tmp_path, {"reconciler.yaml": "version: 1\n", "a.yaml": untidy, "b.yaml": "projects: no\n"}
    )
    with pytest.raises(InvalidConfiguration) as told:
        format_workspace(tmp_path)
    assert [str(each.at) for each in told.value.diagnostics] == ["b.yaml:1:11"]
    assert (tmp_path / "a.yaml").read_text() == untidy
