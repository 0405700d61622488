"""Print through which modules two values of the files pass, from the command line to the request.

    .venv/bin/python scripts/modules_of_a_value.py [--checkout FOLDER]

The values are `paused: true` of a batch export, up to POST …/pause/, and `${secret:env:…}`, up to
the request that carries the secret. Each is measured over an `apply` against the embedded service.
A module counts if one of its functions receives or returns an object that is or contains the value.
A star marks modules that receive or return the value itself or what holds it directly. The embedded
service does not count. `--checkout` measures another checkout, to compare.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
VARIABLE = "RECONCILER_SECRET_TRACED"
SECRET = "hidden-in-the-environment"  # noqa: S105 - a value to follow, not a credential
SEED = {
    "organizations": [
        {
            "name": "Traced",
            "projects": [
                {
                    "name": "Web",
                    "batch_exports": [
                        {"name": "Lake", "destination": {"type": "NoOp", "config": {}}}
                    ],
                }
            ],
        }
    ]
}
WORKSPACE = "version: 1\nenvironments:\n  traced: {}\n"
PAUSED = """\
projects:
  web: {name: Web}
batch_exports:
  lake:
    project: web
    name: Lake
    interval: hour
    paused: true
    destination: {type: NoOp, config: {}}
"""
WITH_SECRET = f"""\
projects:
  web: {{name: Web}}
batch_exports:
  shop:
    project: web
    name: Shop
    interval: hour
    destination:
      type: S3
      config:
        bucket_name: shop
        region: eu-central-1
        prefix: events/
        aws_access_key_id: ${{secret:env:RECONCILER_SECRET_ACCESS_KEY}}
        aws_secret_access_key: ${{secret:env:{VARIABLE}}}
"""


@dataclass(frozen=True)
class Value:
    """A value to follow: the files that have it, its forms, and the request where it ends."""

    title: str
    files: str
    texts: tuple[str, ...]
    ends: Callable[[Any], bool]
    pair: tuple[str, tuple[object, ...]] | None = None


VALUES = (
    Value(
        title="paused: true",
        files=PAUSED,
        texts=("paused: true", "/pause/"),
        ends=lambda request: str(request.url).endswith("/pause/"),
        pair=("paused", (True, "true")),
    ),
    Value(
        title=f"${{secret:env:{VARIABLE}}}",
        files=WITH_SECRET,
        texts=(VARIABLE, SECRET),
        ends=lambda request: SECRET.encode() in request.content,
    ),
)


class Trace:
    """A profile function that records modules in the order in which they first see a value."""

    def __init__(self, package: Path, value: Value) -> None:
        self.modules: list[str] = []
        self.direct: set[str] = set()
        self.complete = False
        self._package = package
        self._value = value

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        """Look at the arguments or the result of a function of the package."""
        if event not in ("call", "return"):
            return
        code = frame.f_code
        if code.co_name == "send" and code.co_filename.endswith("httpx/_client.py"):
            request = frame.f_locals.get("request")
            if event == "call" and request is not None and self._value.ends(request):
                self.complete = True
                sys.setprofile(None)
            return
        path = Path(code.co_filename)
        if not path.is_relative_to(self._package) or code.co_name == "<module>":
            return
        module = path.relative_to(self._package).with_suffix("").as_posix()
        if module in self.direct or module.startswith("emulator/"):
            return
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        values = (
            [frame.f_locals[name] for name in names if name in frame.f_locals]
            if event == "call"
            else [argument]
        )
        if any(self._is_or_holds(value) for value in values):
            self.direct.add(module)
        elif module in self.modules or not any(self._contains(value) for value in values):
            return
        if module not in self.modules:
            self.modules.append(module)

    def _contains(self, value: object) -> bool:
        """Return whether an object contains the value. The search ends after 20,000 parts."""
        seen: set[int] = set()
        rest = [value]
        while rest and len(seen) < 20_000:
            part = rest.pop()
            if self._is_text(part) or self._is_pair(part):
                return True
            if id(part) not in seen:
                seen.add(id(part))
                rest += _parts(part)
        return False

    def _is_or_holds(self, value: object) -> bool:
        return (
            self._is_text(value)
            or self._is_pair(value)
            or any(self._is_text(part) for part in _parts(value))
        )

    def _is_text(self, part: object) -> bool:
        if isinstance(part, bytes):
            part = part.decode(errors="replace")
        return isinstance(part, str) and any(text in part for text in self._value.texts)

    def _is_pair(self, part: object) -> bool:
        """Return whether a mapping, a tuple or an object with a path has the name and the value."""
        if self._value.pair is None:
            return False
        name, values = self._value.pair
        if isinstance(part, Mapping):
            return any(_plain(key) == name and _plain(part[key]) in values for key in part)
        if isinstance(part, tuple) and len(part) == 2:
            return _plain(part[0]) == name and _plain(part[1]) in values
        path = getattr(part, "path", None)
        if isinstance(path, tuple) and path and path[-1] == name:
            return any(getattr(part, attribute, None) is True for attribute in ("after", "value"))
        return False


def _plain(value: object) -> object:
    """Return the value of a node of a file, or the value itself."""
    return getattr(value, "value", value)


def _parts(whole: object) -> Iterator[object]:
    """Yield what an object contains; nothing for the process's environment."""
    if isinstance(whole, Mapping):
        if "PATH" not in whole:
            yield from whole.keys()
            yield from whole.values()
    elif isinstance(whole, (list, tuple, set, frozenset)):
        yield from whole
    elif type(whole).__module__.partition(".")[0] in ("reconciler", "yaml", "httpx"):
        yield from getattr(whole, "__dict__", {}).values()
        for cls in type(whole).__mro__:
            for name in getattr(cls, "__slots__", ()):
                with contextlib.suppress(AttributeError):
                    yield getattr(whole, name)


@contextlib.contextmanager
def service(checkout: Path, seed: Path) -> Iterator[dict[str, Any]]:
    """Run the embedded service of a checkout; yield where it is."""
    process = subprocess.Popen(  # noqa: S603 - our own command
        [sys.executable, "-m", "reconciler", "emulator", "--seed", str(seed)],
        env={**os.environ, "PYTHONPATH": str(checkout)},
        stdout=subprocess.PIPE,
    )
    try:
        yield json.loads(process.stdout.readline() if process.stdout else b"")
    finally:
        process.terminate()
        process.communicate(timeout=20)


def trace_of(value: Value, checkout: Path) -> Trace:
    """Return the trace of a value over an apply."""
    from reconciler.cli import main

    trace = Trace(checkout / "reconciler", value)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "seed.json").write_text(json.dumps(SEED))
        (folder / "reconciler.yaml").write_text(WORKSPACE)
        (folder / "files.yaml").write_text(value.files)
        with service(checkout, folder / "seed.json") as place:
            os.environ |= {
                "RECONCILER_BASE_URL": place["base_url"],
                "RECONCILER_ORGANIZATION": place["organization"],
                "RECONCILER_API_KEY": place["api_key"],
                VARIABLE: SECRET,
                "RECONCILER_SECRET_ACCESS_KEY": "AKIA",
            }
            sys.argv = ["reconciler", "apply", "-C", name, "--auto-approve", "--no-base"]
            output = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
            with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
                sys.setprofile(trace)
                try:
                    main()
                except SystemExit:
                    pass
                finally:
                    sys.setprofile(None)
    if not trace.complete:
        output.seek(0)
        sys.exit(f"error: {value.title} reached no request\n{output.read()}")
    return trace


def main() -> None:
    """Print the number and the names of the modules of each value."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--checkout", type=Path, default=ROOT, help="Default: this checkout.")
    checkout: Path = parser.parse_args().checkout.resolve()
    sys.path.insert(0, str(checkout))
    for value in VALUES:
        trace = trace_of(value, checkout)
        lines = [f"{value.title}: {len(trace.modules)} modules, {len(trace.direct)} directly"]
        lines += [f"{'*' * (name in trace.direct):>2} {name}" for name in trace.modules]
        print("\n".join(lines))  # noqa: T201 - the result of a script


if __name__ == "__main__":
    main()
