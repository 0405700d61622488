"""Options of output besides its format."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from reconciler.render.style import PLAIN, Style

COMMENT_LIMIT = 65_536
"""Characters of a comment on GitHub."""


class RenderOptions(Struct, frozen=True):
    """How to write a result. A format ignores options that do not concern it.

    `root` is the path from the root of the repository to the workspace folder, with forward
    slashes, "" if they are the same. GitHub places annotations and code scanning results by it.

    Of a plan, `verbose` shows every field and every member of a group, and `summary` only counts,
    dangers and violations. `cost` is what applying it takes, as text. `limit` is for the characters
    of Markdown, and `page` the address of the job, which has what is cut. `since` is the text of
    earlier comments, with which Markdown compares the plan.

    Of diagnostics, `command` is the command that reports them, and `passed` the text if there are
    none.

    `mask` masks known secrets in the result; None for one in which they are masked already.

    Of states, `verbose` lists also the objects that are fine, and `links` their pages.
    """

    style: Style = PLAIN
    show_unmanaged: bool = False
    root: str = ""
    verbose: bool = False
    summary: bool = False
    cost: str = ""
    links: bool = False
    limit: int = COMMENT_LIMIT
    page: str = ""
    since: str = ""
    command: str = "validate"
    passed: str = "The configuration is valid"
    mask: Callable[[str], str] | None = None

    def repository_path(self, file: str) -> str:
        """Return the path of a file of the workspace from the root of the repository."""
        return f"{self.root}/{file}" if self.root else file


DEFAULTS = RenderOptions()
