"""`fmt` of any file: no value and no comment is lost, keys are in order, twice is once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from reconciler.authoring.formatting import format_file
from reconciler.diagnostics import DiagnosticCollector
from reconciler.model.schemas import schema
from reconciler.workspace.yaml.loader import parse


def formatted(text: str) -> str:
    problems = DiagnosticCollector()
    _, after = format_file(text.encode(), "f.yaml", problems)
    assert not problems.diagnostics
    assert after is not None
    _, again = format_file(after.text.encode(), "f.yaml", problems)
    assert again is not None
    assert again.text == after.text
    return after.text


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
def test_comments_and_values_are_kept_and_keys_are_ordered(lines: list[str], head: str) -> None:
    text = f"{head}batch_exports:\n  lake:\n" + "\n".join(lines) + "\n"
    before = parse(text.encode(), "f", DiagnosticCollector())
    after = formatted(text)
    again = parse(after.encode(), "f", DiagnosticCollector())
    assert again.value == before.value
    assert sorted(filter(None, map(str.strip, after.splitlines()))) == sorted(
        filter(None, map(str.strip, text.splitlines()))
    )
    order = list(schema("batch_export")["properties"])
    known = [name for name in again.value["batch_exports"]["lake"] if name in order]
    assert known == sorted(known, key=order.index)


# Valid resources, as people write them


_FIELDS = {
    "project": ["web", "{id: 1}"],
    "name": ["Lake", "'Lake: #1'", '"Lake"'],
    "model": ["events", "'persons'"],
    "interval": ["hour", '"day"'],
    "paused": ["true", "false"],
    "end_at": ["2030-01-01T00:00:00Z", "null"],
    "sql_query": ["|\n%sselect event\n\n%s  from events", ">-\n%sselect\n%sevent", "select 1"],
    "filters": ["[]", "\n%s- {key: a, value: b}\n%s- key: c\n%s  value: d"],
    "environments": ["[staging]", "\n%s- staging\n%s- production"],
    "lifecycle": ["{protect: true}", "\n%sprotect: true\n%signore_changes: [end_at]"],
    "secret_version": ["1", "'2026'"],
}
_CONFIG = {
    "bucket_name": ["acme", "${var:bucket}"],
    "region": ["eu-central-1"],
    "prefix": ["web/", '"web: #/"'],
    "compression": ["null", "gzip"],
    "exclude_events": ["[$pageleave]", "\n%s- $pageleave\n%s- $autocapture"],
    "aws_access_key_id": ["${secret:env:ID}"],
    "aws_secret_access_key": ["${secret:env:KEY}"],
}


@st.composite
def _written(
    draw: st.DrawFn, fields: dict[str, list[str]], *, indent: int, comments: list[str]
) -> list[str]:
    lines: list[str] = []
    margin = " " * indent
    for name in draw(st.permutations(sorted(fields))):
        if draw(st.booleans()):
            lines += [""] * draw(st.integers(0, 2))
        for _ in range(draw(st.integers(0, 2))):
            comments.append(f"# {len(comments)} {name}")
            lines.append(margin + comments[-1])
        value = draw(st.sampled_from(fields[name]))
        inner = " " * (indent + draw(st.sampled_from([2, 4])))
        first, *rest = value.replace("%s", inner).split("\n")
        beside = "  # beside" if not rest and first[:1] not in "|>" and draw(st.booleans()) else ""
        lines += [f"{margin}{name}: {first}{beside}".rstrip(), *rest]
    return lines


@st.composite
def _files(draw: st.DrawFn) -> tuple[str, list[str]]:
    """Draw a resource file, and the comments above its fields, which name the field."""
    comments: list[str] = []
    step = draw(st.sampled_from([2, 4]))
    lines = ["# yaml-language-server: $schema=resources.schema.json", "", "batch_exports:"]
    for key in draw(st.permutations(["b", "a", "c"])):
        lines.append(f"{' ' * step}{key}:")
        chosen = draw(st.sets(st.sampled_from(sorted(_FIELDS)), min_size=1))
        fields = {name: _FIELDS[name] for name in chosen}
        body = draw(_written(fields, indent=2 * step, comments=comments))
        config = draw(_written(_CONFIG, indent=4 * step, comments=comments))
        destination = [f"{' ' * 3 * step}config:", *config, f"{' ' * 3 * step}type: S3"]
        lines += [f"{' ' * 2 * step}destination:", *destination, *body]
    return "\n".join(lines) + "\n", comments


@given(file=_files())
def test_comments_stay_with_their_fields_and_resources_in_place(
    file: tuple[str, list[str]],
) -> None:
    text, comments = file
    after = formatted(text)
    before, again = (
        parse(file.encode(), "f", DiagnosticCollector()).value for file in (text, after)
    )
    assert again == before
    assert list(again["batch_exports"]) == list(before["batch_exports"])
    lines = [line.strip() for line in after.splitlines()]
    assert lines[0] == "# yaml-language-server: $schema=resources.schema.json"
    for comment in comments:
        below = lines.index(comment) + 1
        while lines[below].startswith("#") or not lines[below]:
            below += 1
        assert lines[below].startswith(f"{comment.split()[-1]}:")
    order = list(schema("destinations/S3")["properties"])
    for resource in again["batch_exports"].values():
        config = list(resource["destination"]["config"])
        assert config == sorted(config, key=order.index)
