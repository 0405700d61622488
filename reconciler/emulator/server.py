"""The command that serves the interface: it prints one JSON line when it is ready."""

from __future__ import annotations

import os
import shlex
import signal
import socket
import sqlite3
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from ipaddress import ip_address
from pathlib import Path

import click
import orjson
import uvicorn
from starlette.types import ASGIApp

from reconciler.emulator.app import build
from reconciler.emulator.clock import Clock
from reconciler.emulator.dialects import DIALECTS
from reconciler.emulator.inputs import BadInput
from reconciler.emulator.seed import default_seed, plant, read_seed
from reconciler.emulator.store import Store
from reconciler.emulator.throttle import SERVICE_WINDOWS, Throttle, Window, windows_from_text
from reconciler.emulator.transport import Connection, Guard
from reconciler.emulator.world import World


class _Server(uvicorn.Server):
    """uvicorn's server, which prints a line once the port accepts connections."""

    def __init__(self, app: ASGIApp, listening: socket.socket, line: bytes) -> None:
        config = uvicorn.Config(
            app,
            log_level="critical",
            access_log=False,
            # The gate adds it, by the clock of the service.
            date_header=False,
            lifespan="off",
            timeout_graceful_shutdown=2,
            http=Connection,
            # A client that idles for long keeps its connection, as behind a real proxy.
            timeout_keep_alive=75,
        )
        super().__init__(config)
        self._listening = listening
        self._line = line

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept connections, then print the line."""
        await super().startup(sockets=sockets)
        sys.stdout.write(self._line.decode() + "\n")
        sys.stdout.flush()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """End cleanly on SIGTERM and Ctrl-C; uvicorn would raise the signal again afterwards."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self.handle_exit)
        yield

    def serve_until_stopped(self) -> None:
        """Run until SIGTERM or Ctrl-C."""
        self.run(sockets=[self._listening])


@click.command("emulator")
@click.option("--port", default=0, show_default=True, help="Port to listen on; 0 picks a free one.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--db",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Keep state in this file across restarts. Default: in memory.",
)
@click.option(
    "--seed",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="YAML or JSON file with initial organizations, projects, exports and keys.",
)
@click.option(
    "--dialect",
    type=click.Choice(list(DIALECTS)),
    default="interface",
    show_default=True,
    help="The server version to emulate.",
)
@click.option(
    "--throttle",
    is_flag=False,
    flag_value="service",
    metavar="[CALLS/SECONDS,…]",
    help="Limit the calls of each key. Without windows: 480/60,4800/3600.",
)
@click.option(
    "--allow-host",
    "allowed_hosts",
    multiple=True,
    metavar="NAME",
    help="Also accept requests for this host. Default: loopback and the bound address.",
)
@click.option(
    "--organization-list/--no-organization-list",
    default=True,
    help="Whether dialect 2026 lists the exports of an organization; its newest servers do not.",
)
@click.option("--until-stdin-ends", is_flag=True, hidden=True)
def command(  # noqa: PLR0913 - one for each option
    *,
    port: int,
    host: str,
    db: Path | None,
    seed: Path | None,
    dialect: str,
    throttle: str | None,
    allowed_hosts: tuple[str, ...],
    organization_list: bool,
    until_stdin_ends: bool,
) -> None:
    """Serve the interface on loopback, without an account or a network.

    When it is ready, it prints one JSON line with base_url, organization, project_id and api_key to
    stdout, or to a terminal the commands that set them. SIGTERM or Ctrl-C stops it.
    """
    if until_stdin_ends:
        threading.Thread(target=_exit_with_stdin, daemon=True).start()
    if not DIALECTS[dialect].newest and not organization_list:
        raise click.UsageError("--no-organization-list needs --dialect 2026")
    served = replace(DIALECTS[dialect], organization_list=organization_list)
    try:
        content = read_seed(seed) if seed is not None else default_seed()
        limits = Throttle(_windows_of(throttle))
        world = World(Store(str(db) if db is not None else ":memory:"), Clock(), served)
        if world.store.empty:
            with world.store.transaction():
                plant(world, content)
    except (BadInput, sqlite3.Error) as error:
        raise click.ClickException(str(error)) from None

    def replant() -> None:
        with world.store.transaction():
            world.store.clear()
            plant(world, content)

    app = Guard(build(world, replant, throttle=limits), bound=host, allowed=allowed_hosts)
    _warn_if_open(host)
    with listening_socket(host, port) as listening:
        details = _connection_details(world.store, host, listening.getsockname()[1])
        line = _exports(details) if sys.stdout.isatty() else orjson.dumps(details)
        try:
            _Server(app, listening, line).serve_until_stopped()
        finally:
            world.store.close()


def _exit_with_stdin() -> None:
    """End this process when the standard input ends: what started it may have been killed."""
    while os.read(0, 1 << 10):
        pass
    os._exit(0)


def _connection_details(store: Store, host: str, port: int) -> dict[str, object]:
    organization = store.organizations()[0]
    projects = store.projects(organization, limit=1)
    named = f"[{host}]" if ":" in host else host
    return {
        "base_url": f"http://{named}:{port}",
        "organization": organization,
        "project_id": projects[0].id if projects else None,
        "api_key": store.key_values()[0],
    }


def _exports(details: Mapping[str, object]) -> bytes:
    names = ("base_url", "organization", "api_key")
    values = ((name.upper(), shlex.quote(str(details[name]))) for name in names)
    return "\n".join(f"export RECONCILER_{name}={value}" for name, value in values).encode()


def listening_socket(host: str, port: int) -> socket.socket:
    """Return a bound socket. Raise click.ClickException if the address is not free.

    With the protocol named, asyncio sets TCP_NODELAY on accepted connections. Without it each
    answer on a kept connection waits for the client's delayed acknowledgement, about 40 ms.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except OSError as error:
        listening.close()
        raise click.ClickException(f"cannot listen on {host}:{port}: {error.strerror}") from None
    return listening


def _windows_of(throttle: str | None) -> tuple[Window, ...]:
    if throttle is None:
        return ()
    return SERVICE_WINDOWS if throttle == "service" else windows_from_text(throttle)


def _warn_if_open(host: str) -> None:
    try:
        loopback = ip_address(host).is_loopback
    except ValueError:
        loopback = host == "localhost"
    if not loopback:
        sys.stderr.write(
            f"warning: {host} is not a loopback address: anyone who reaches it can read and "
            "change all stored data, and the switchboard needs no key\n"
        )
