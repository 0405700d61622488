"""The text of public JSON: forms, and times in them."""

from __future__ import annotations

from datetime import datetime

import orjson
from msgspec import to_builtins

from reconciler.model.codec.base import Form
from reconciler.model.field_types import time_text
from reconciler.model.wording import plain_json


def json_text(form: Form) -> str:
    """Return indented JSON of a form, in which control characters are escapes."""
    content = orjson.dumps(to_builtins(form), option=orjson.OPT_INDENT_2)
    return plain_json(content.decode()) + "\n"


def json_line(form: Form) -> str:
    """Return JSON of a form in one line, in which control characters are escapes."""
    return plain_json(orjson.dumps(to_builtins(form)).decode()) + "\n"


def optional_time(moment: datetime | None) -> str | None:
    """Return the text of a time, None for None."""
    return None if moment is None else time_text(moment)
