"""The README for the page of the package, which resolves no relative links."""

from __future__ import annotations

import re

_LINK = re.compile(r"\]\((?!https?:|#)([^)\s]+)\)")


def absolute_readme(text: str, repository: str, tag: str) -> str:
    """Return a text whose links are addresses of the files of a tag."""
    return _LINK.sub(rf"]({repository}/blob/{tag}/\1)", text)


def addresses(repository: str, tag: str) -> dict[str, str]:
    """Return the links of the page of the package."""
    return {
        "Repository": repository,
        "Documentation": f"{repository}/blob/{tag}/docs/index.md",
        "Changelog": f"{repository}/blob/{tag}/CHANGELOG.md",
        "Issues": f"{repository}/issues",
    }
