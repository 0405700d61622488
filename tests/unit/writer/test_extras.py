"""What a text has besides its values, which `import --force` loses."""

from __future__ import annotations

import pytest

from reconciler.authoring.import_texts import extras_in


@pytest.mark.parametrize(
    ("text", "extras"),
    [
        ("", []),
        ("# one\na: 1 # two\n  # three", [(1, "# one"), (2, "# two"), (3, "# three")]),
        ("a: 'x # y' # z\nb: \"#\"\nc: d#e\n", [(1, "# z")]),
        ("a: |  # head\n  # text\n\nb: 1\n", [(1, "# head")]),
        ("a: >-\n  x\n# below\n", [(3, "# below")]),
        ("a: 'x\n  # y' # z\n", [(2, "# z")]),
        ("a: [1, # one\n  2] # two\n", [(1, "# one"), (2, "# two")]),
        ("a: {b: 1} # c # d\n", [(1, "# c # d")]),
        (
            "a: &x {b: 1}\nc: *x # y\nd:\n  <<: *x\n  e: '<<'\n",
            [(1, "&x"), (2, "*x"), (2, "# y"), (4, "<<"), (4, "*x")],
        ),
        ("a: 1\n...\n# end\n", [(3, "# end")]),
    ],
)
def test_configuration_10_every_comment_anchor_and_merge_key_is_found(
    text: str, extras: list[tuple[int, str]]
) -> None:
    for ending in ("\n", "\r\n"):
        written = text.replace("\n", ending)
        assert [(extra.line, extra.text) for extra in extras_in(written)] == extras
