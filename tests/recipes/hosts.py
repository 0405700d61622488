"""What the simulators of hosts share: programs, checkouts, artifacts and shells."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from multiprocessing.connection import arbitrary_address
from pathlib import Path

from tests.support import served
from tests.support.emulator import PROCESSES
from tests.support.git import Git
from tests.support.limits import TIMEOUT

_CLIENT = """\
import _socket, marshal, os, sys
server = _socket.socket(_socket.AF_UNIX)
server.connect("{address}")
streams = b"".join(number.to_bytes(4, sys.byteorder) for number in range(3))
message = marshal.dumps((os.getcwd(), dict(os.environ), sys.argv[1:]))
server.sendmsg([message], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
sys.exit(ord(server.recv(1)))
"""


@cache
def forked_program() -> str:
    """Return the text of a `reconciler` that runs in a fork: a start takes most of the time."""
    address = arbitrary_address("AF_UNIX")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(address)
        server.listen()
        PROCESSES.Process(target=served.run_each, args=(server,), daemon=True).start()
    return f"""#!/bin/sh
exec {sys.executable} -ISc '{_CLIENT.format(address=address)}' "$@"
"""


@dataclass
class JobResult:
    """How a job ended."""

    code: int = 0
    outputs: dict[str, str] = field(default_factory=dict)
    summary: str = ""
    log: str = ""
    skipped: bool = False


@dataclass
class Host:
    """A repository at a host."""

    folder: Path
    origin: Git
    runs: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        for name in ("bin", "artifacts"):
            (self.folder / name).mkdir(parents=True)
        write_program(self.folder / "bin/python3", installer(self.folder / "reconciler"))
        write_program(self.folder / "reconciler", forked_program())

    def checkout(self, commit: str) -> Path:
        """Return a new checkout of a commit, in the folder of a new run."""
        self.runs += 1
        folder = self.folder / f"run-{self.runs}/checkout"
        folder.parent.mkdir()
        self.origin.clone(folder).run("checkout", "--quiet", "--detach", commit)
        return folder

    def keep(self, name: str, files: Iterable[Path]) -> None:
        """Keep an artifact with those of the files that exist."""
        folder = self.folder / "artifacts" / name
        for file in files:
            if file.exists():
                folder.mkdir(parents=True, exist_ok=True)
                shutil.copy(file, folder)


def bash(
    script: str,
    folder: Path | str,
    environ: Mapping[str, str],
    programs: Iterable[Path | str],
    options: Iterable[str] = ("-eo", "pipefail"),
) -> subprocess.CompletedProcess[str]:
    """Run a script with some folders of programs. Its output has what went to standard error."""
    own = {
        "PATH": ":".join([*map(str, programs), os.environ["PATH"]]),
        "HOME": str(folder),
        "GIT_CONFIG_NOSYSTEM": "1",
    }
    return subprocess.run(
        ["bash", "--noprofile", "--norc", *options, "-c", script],
        cwd=folder,
        env={**own, **environ},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=TIMEOUT,
    )


def write_program(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


def installer(program: Path) -> str:
    """Return a `python3` that makes environments with a `pip` and, when that ran, a program.

    `pip` insists on hashes for what it takes from an index, and builds only what git fetched.
    """
    return f"""#!/bin/sh
test "$1 $2 $3" = "-I -m venv" || exit 64
mkdir -p "$4/bin"
cat > "$4/bin/pip" <<'PIP'
#!/bin/sh
test "$1 $2" = "install --quiet" || exit 64
shift 2
case "$*" in
  "--require-hashes -r source/requirements.txt") grep -q hash source/requirements.txt ;;
  "--no-deps --no-build-isolation ./source") cp {program} reconciler/bin/reconciler ;;
  *) exit 64 ;;
esac
PIP
chmod +x "$4/bin/pip"
"""


def source_repository(folder: Path) -> Git:
    """Return a repository from which pipelines install the program."""
    git = Git.init(folder)
    if not (folder / "requirements.txt").exists():
        (folder / "requirements.txt").write_text("click==8.5.1 --hash=sha256:00\n")
        git.commit()
        git.run("config", "uploadpack.allowAnySHA1InWant", "true")
    return git
