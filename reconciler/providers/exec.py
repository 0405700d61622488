"""`${secret:exec:COMMAND}`: the output of a command, if the policy allows it."""

from __future__ import annotations

import os

from reconciler.errors import SecretUnavailable
from reconciler.model.values import SecretSource
from reconciler.providers.provider import FillContext, Provider, SecretContext, without_line_end

SECONDS = 10.0
SWITCH = "RECONCILER_ALLOW_EXEC"
"""Commands run only if this variable is 1: files alone cannot start a process."""
_HOW_TO_ALLOW = "set `policy: {allow_exec_secrets: true}` in reconciler.yaml"


def _accepts(_: str, context: FillContext) -> bool:
    if not context.rules.allow_exec:
        message = "secrets from commands are not allowed by the policy"
        context.report("exec-not-allowed", message, _HOW_TO_ALLOW)
    return context.rules.allow_exec


def _look_up(source: SecretSource, context: SecretContext) -> str:
    if not context.settings.allow_exec:
        raise SecretUnavailable(f"secret {source} is not allowed by the policy", hint=_HOW_TO_ALLOW)
    if context.environ.get(SWITCH) != "1":
        hint = f"set {SWITCH}=1 for `apply` if you trust the command"
        message = f"secret {source} runs a command, and {SWITCH} is not set"
        raise SecretUnavailable(message, hint=hint)
    import shlex
    import subprocess

    # The command of the API key also runs for a plan of a pull request, whose files must not run.
    is_foreign = context.for_api_key and context.settings.trusted.strict
    try:
        result = subprocess.run(  # noqa: S603 - the policy allows it, and no shell is used
            shlex.split(source.argument),
            cwd=os.sep if is_foreign else context.settings.folder,
            env=dict(context.environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=SECONDS,
            check=True,
            text=True,
        )
    except (OSError, ValueError) as error:
        reason = f"cannot start the command ({type(error).__name__})"
    except subprocess.TimeoutExpired:
        reason = f"the command timed out after {SECONDS:g} seconds"
    except subprocess.CalledProcessError as error:
        reason = f"the command failed with exit code {error.returncode}"
    else:
        return without_line_end(result.stdout)
    # The output may contain the secret: do not show it.
    hint = f"run it manually: {source.argument}"
    raise SecretUnavailable(f"secret {source}: {reason}", hint=hint)


PROVIDER = Provider("exec", "COMMAND", accepts=_accepts, look_up=_look_up, position=4)
