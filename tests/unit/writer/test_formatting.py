"""`fmt`: order, comments, and that no file is ever damaged."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.commands.formatting import FormatOptions, format_workspace
from reconciler.config.formatting import format_file
from reconciler.config.loader import parse
from reconciler.config.schema_files import schema
from reconciler.errors import InvalidConfiguration, Problems
from reconciler.kinds import all_kinds
from tests.conftest import ROOT
from tests.support.cli import write

KINDS = all_kinds()


def formatted(text: str, file: str = "exports.yaml") -> str:
    problems = Problems()
    _, found = format_file(text.encode(), file, KINDS, problems)
    assert not problems.found
    assert found is not None
    assert format_file(found.encode(), file, KINDS, problems)[1] == found
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
        "        select\n"
        "\n"
        "          # no comment\n"
        "            event\n"
        "    destination:\n"
        "      config:\n"
        "        include_events:\n"
        "          - a\n"
        "          -   b: 1\n"
        "              c: 2\n"
    )


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
    before = parse(text.encode(), "f", Problems()).value
    after = formatted(text)
    assert parse(after.encode(), "f", Problems()).value == before
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
    found = format_file(raw, "f.yaml", KINDS, Problems())[1]
    assert found == "projects:\r\n  web:\r\n    name: Web\r\n    timezone: UTC\r\n"


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
    problems = Problems()
    assert format_file(text.encode(), "f.yaml", KINDS, problems)[1] is None
    assert problems.failed


@pytest.mark.parametrize("path", sorted((ROOT / "examples").rglob("*.yaml")), ids=lambda p: p.name)
def test_examples_keep_every_line_and_value(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    after = formatted(text, path.name)
    assert sorted(filter(None, after.splitlines())) == sorted(filter(None, text.splitlines()))


# Any tree, written in any style, with comments anywhere

_names = st.sampled_from(
    [
        "name",
        "paused",
        "interval",
        "project",
        "sql_query",
        "destination",
        "lifecycle",
        "odd",
        "'a b'",
    ]
)
_scalars = st.sampled_from(
    [
        "1",
        "text",
        "null",
        "'quoted: # no comment'",
        "[1, {a: b}]",
        "{a: 1}",
        "|\n%ssome\n%s  more",
        ">-\n%sx",
        '"a\n%sb"',
        "plain\n%stext",
        "\n%s- 1",
        "\n%s- a: 1\n%s  b: 2\n%s- c",
    ]
)


@st.composite
def _entries(draw: st.DrawFn, indent: int, depth: int) -> list[str]:
    lines: list[str] = []
    step = draw(st.integers(1, 5))
    for name in draw(st.lists(_names, min_size=1, max_size=4, unique=True)):
        lines += draw(st.lists(st.sampled_from(["", " " * indent + "# above"]), max_size=2))
        inner = indent + step
        if depth and draw(st.booleans()):
            lines.append(" " * indent + f"{name}:{draw(st.sampled_from(['', '  # beside']))}")
            lines += draw(_entries(inner, depth - 1))
            if draw(st.booleans()):
                lines.append(" " * inner + "# below")
        else:
            value = draw(_scalars)
            parts = value.replace("%s", " " * inner).split("\n")
            lines.append(" " * indent + f"{name}: {parts[0]}".rstrip())
            lines += parts[1:]
    return lines


@given(lines=_entries(4, 3), head=st.sampled_from(["", "# head\n", "# head\n\n", "---\n"]))
def test_no_comment_and_no_value_is_lost_and_order_is_found(lines: list[str], head: str) -> None:
    text = f"{head}batch_exports:\n  lake:\n" + "\n".join(lines) + "\n"
    before = parse(text.encode(), "f", Problems())
    after = formatted(text)
    again = parse(after.encode(), "f", Problems())
    assert again.value == before.value
    assert sorted(filter(None, map(str.strip, after.splitlines()))) == sorted(
        filter(None, map(str.strip, text.splitlines()))
    )
    order = list(schema("batch_export")["properties"])
    known = [name for name in again.value["batch_exports"]["lake"] if name in order]
    assert known == sorted(known, key=order.index)


def test_check_writes_nothing_and_format_writes_what_changed(tmp_path: Path) -> None:
    tidy = "projects:\n  app: {name: App}\n"
    untidy = "projects:\n  web:\n    timezone: UTC\n    name: Web\n"
    files = {"reconciler.yaml": "version: 1\n", "a.yaml": tidy, "b.yaml": untidy}
    write(tmp_path, files)
    told = format_workspace(FormatOptions(tmp_path, write=False))
    assert list(told.changed) == ["b.yaml"]
    assert (tmp_path / "b.yaml").read_text() == untidy
    assert format_workspace(FormatOptions(tmp_path)) == told
    assert (tmp_path / "b.yaml").read_text() == told.changed["b.yaml"].text
    assert (tmp_path / "a.yaml").read_text() == tidy
    assert not format_workspace(FormatOptions(tmp_path)).changed


def test_one_bad_file_leaves_all_files_alone(tmp_path: Path) -> None:
    untidy = "projects:\n  web:\n    timezone: UTC\n    name: Web\n"
    write(tmp_path, {"reconciler.yaml": "version: 1\n", "a.yaml": untidy, "b.yaml": "a: no\n"})
    with pytest.raises(InvalidConfiguration) as told:
        format_workspace(FormatOptions(tmp_path))
    assert [str(each.at) for each in told.value.diagnostics] == ["b.yaml:1:4"]
    assert (tmp_path / "a.yaml").read_text() == untidy
