"""Commands and options that were removed, each with what to use instead.

Add an entry when you remove one: nothing else is needed. `tests/integration/test_removed.py` runs
each entry.
"""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.errors import BadUsage

COMMANDS: Mapping[str, str] = {
    "audit": "use `reconciler show FILE`",
    "fmt": "use prettier or yamlfmt",
    "help": "use `reconciler --help` or `reconciler COMMAND --help`",
    "policy": "use conftest on the JSON of a plan (docs/policy.md)",
    "preflight": "use `reconciler doctor NAME`",
    "pull": "use `drift --write`",
    "schema": "use `reconciler init --schemas`, which writes them to .reconciler/",
}
"""The hint for each command, by name."""

WORDS: Mapping[str, str] = {
    "base-not-live": "the inventory is what files are compared with (docs/planning.md)",
    "declared-on-the-way": "remove the rule: the files are compared with the inventory only",
    "environments.NAME.branch": "use RECONCILER_TRUST_REF, or the default branch",
    "mark.ref": "`apply` records what it applies; --push pushes it",
    "name-from-environment": "remove the rule: an inventory knows the objects by id",
    "permuted-names": "remove the rule: an inventory knows the objects by id",
    "policy.allow_replace": "use `lifecycle.allow_replace`, or `apply --allow-replace`",
    "policy.withdraw": "remove it: `apply` deletes nothing that it created",
}
"""The hint for each field and rule, as `explain` takes it."""

_PLANNING = {
    "--base": "the inventory is what files are compared with; --no-inventory ignores it",
    "--no-base": "use --no-inventory",
    "--undo": "revert the commit and apply",
}
OPTIONS: Mapping[str, Mapping[str, str]] = {
    "plan": {**_PLANNING, "--since": "compare with the last comment of the pull request"},
    "apply": {
        **_PLANNING,
        "--mark": "`apply` records what it applies; --push pushes it",
        "--no-verify": "leave it out: every apply is verified",
        "--shown": "compare with the last comment of the pull request",
        "--shared": "make a new plan and have it reviewed",
        "--verify": "leave it out: every apply is verified",
    },
    "backfill": {"--out": "plan with --dry-run, then run the same command without it"},
    "compare": {"--live": "use `reconciler drift` of each environment"},
    "emulator": {"--faults": "send them to /_emulator/faults (docs/inside/emulator.md)"},
    "import": {
        "--force": "delete the file in git, and import again",
        "--id": "use `reconciler import ID`",
        "--layout": "use --into, or move the resources afterwards",
        "--name": "use `reconciler import NAME`",
    },
    "logs": {"--follow": "use `watch reconciler logs NAME`", "--until": "use --to"},
    "init": {
        "--api-key-variable": "set `api_key:` in reconciler.yaml",
        "--import": "run `reconciler import` afterwards",
        "--layout": "run `import --into` afterwards",
    },
    "mv": {
        "--format": "leave it out: mv prints the changed files, and --diff a patch",
        "--name": "set `name:` in the file, and the old name in `lifecycle.renamed_from`",
    },
    "pause": {"--write": "set `paused: true` in the file"},
    "projects": {"--out": "use --reveal, and read the token from the output"},
    "promote": {
        "--format": "leave it out: promote prints a patch; `compare` has `--format json`",
        "--no-plan": "leave it out: promote changes files only",
    },
    "runs": {
        "--auto-approve": "use `reconciler backfill NAME --failed --auto-approve`",
        "--cancel": "cancel the run in the service, or backfills with `backfill NAME --cancel`",
        "--dry-run": "use `reconciler backfill NAME --failed --dry-run`",
        "--failed": "use --status Failed, or `reconciler backfill NAME --failed`",
        "--follow": "use `watch reconciler runs NAME`",
        "--order": "runs are in the order of their creation; use `reconciler gaps` for intervals",
        "--retry": "use `reconciler backfill NAME --failed`",
        "--until": "use --to",
        "--wait": "use `reconciler backfill NAME --failed --wait`",
    },
    "show": {
        "--resolved": "use `reconciler show NAME`",
        "--since": "compare with the last comment of the pull request",
    },
    "status": {"--watch": "use `watch reconciler status`"},
    "unpause": {
        "--backfill": "run `reconciler backfill NAME --since-pause` afterwards",
        "--write": "set `paused: false` in the file",
    },
}
"""The hint for each option, by command, then by name."""

EVERYWHERE: Mapping[str, str] = {
    "--help-all": "use --help",
    "--insecure-http": "set `client.insecure_http: true` in reconciler.yaml",
    "--max-wait": "set `client.max_wait` in reconciler.yaml",
    "--parallelism": "set `client.parallelism` in reconciler.yaml",
    "--retry-for": "set `client.retry_for` in reconciler.yaml",
    "--timeout": "set `client.timeout` in reconciler.yaml",
}
"""The hint for each option that many commands had, by name."""


def refuse_removed_command(name: str) -> None:
    """Raise BadUsage for a command that was removed."""
    if name in COMMANDS:
        raise BadUsage(f"'{name}' was removed", hint=COMMANDS[name])


def refuse_removed_word(name: str) -> None:
    """Raise BadUsage for a field, a rule, a command or an option that was removed."""
    if (hint := {**EVERYWHERE, **COMMANDS, **WORDS}.get(name)) is not None:
        raise BadUsage(f"'{name}' was removed", hint=hint)


def refuse_removed_option(command: str, name: str) -> None:
    """Raise BadUsage for an option of a command that was removed."""
    if name in (hints := {**EVERYWHERE, **OPTIONS.get(command, {})}):
        raise BadUsage(f"'{command} {name}' was removed", hint=hints[name])
