"""A plan as text, Markdown and JSON. Pure."""

from reconciler.render.plan.markdown import plan_as_markdown
from reconciler.render.plan.text import plan_as_text

__all__ = ["plan_as_markdown", "plan_as_text"]
