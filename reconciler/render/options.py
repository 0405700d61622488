"""What a caller chooses about output besides its format."""

from __future__ import annotations

from dataclasses import dataclass

from reconciler.render.style import PLAIN, Style


@dataclass(frozen=True, slots=True)
class RenderOptions:
    """How to write a result. A format ignores what it has no use for.

    `root` is the path of the workspace folder in its repository, with forward slashes and "" for
    the root itself: annotations and code scanning find files from there.
    """

    style: Style = PLAIN
    show_unmanaged: bool = False
    root: str = ""


DEFAULTS = RenderOptions()
