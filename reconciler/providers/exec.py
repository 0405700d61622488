"""`${secret:exec:COMMAND}`: what a command prints, where the policy permits it."""

from __future__ import annotations

import shlex
import subprocess

from reconciler.errors import SecretUnavailable
from reconciler.model.values import SecretSource
from reconciler.providers.provider import Filling, LookUp, Provider, without_line_end

SECONDS = 10.0
_PERMIT = "set `policy: {allow_exec_secrets: true}` in reconciler.yaml"


def _accepts(command: str, filling: Filling) -> bool:
    del command
    if not filling.allow_exec:
        filling.refuse(
            "exec-not-allowed", "this workspace does not allow secrets from commands", _PERMIT
        )
    return filling.allow_exec


def _look_up(source: SecretSource, place: LookUp) -> str:
    if not place.settings.allow_exec:
        raise SecretUnavailable(f"secret {source} may not be run", hint=_PERMIT)
    try:
        result = subprocess.run(  # noqa: S603 - the workspace permits it, and no shell is used
            shlex.split(source.argument),
            cwd=place.settings.folder,
            env=dict(place.environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=SECONDS,
            check=True,
            text=True,
        )
    except (OSError, ValueError) as error:
        reason = f"it can't be started ({type(error).__name__})"
    except subprocess.TimeoutExpired:
        reason = f"it did not end within {SECONDS:g} seconds"
    except subprocess.CalledProcessError as error:
        reason = f"it ended with exit code {error.returncode}"
    else:
        return without_line_end(result.stdout)
    # What the command printed may hold the secret: none of it is shown.
    raise SecretUnavailable(
        f"secret {source}: {reason}", hint=f"run it manually to see why: {source.argument}"
    )


PROVIDER = Provider("exec", "COMMAND", accepts=_accepts, look_up=_look_up, position=4)
