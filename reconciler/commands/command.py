"""Commands with grouped options, examples, a page of the documentation, and common options."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, TypeVar

import click

from reconciler.errors import BadUsage, ReconcilerError

_CURRENT: ContextVar[OutputSettings] = ContextVar("output_settings")
_Function = TypeVar("_Function", bound=Callable[..., Any])
_ARGUMENTS = "Arguments"
_OWN = "Options"
_APPROVES = frozenset({"-auto-approve", "--yes", "--approve"})
"""What other tools call `--auto-approve`."""
OUTPUT = "Output"
"""The heading of the options about output."""


class OutputSettings:
    """The common options, in the order of `--help`, and what was sent and left out so far."""

    # A plain class, since --version needs neither msgspec nor dataclasses otherwise.
    def __init__(self) -> None:
        self.quiet = False
        self.verbose = False
        self.debug = False
        self.no_colour = False
        self.sent: list[str] = []
        self.left_out: dict[tuple[str, str], ReconcilerError] = {}


def begin() -> None:
    """Start a run with the default settings."""
    _CURRENT.set(OutputSettings())


def current() -> OutputSettings:
    """Return the settings of this run."""
    try:
        return _CURRENT.get()
    except LookupError:
        begin()
        return _CURRENT.get()


class GroupedOption(click.Option):
    """An option that the help lists under a heading."""

    def __init__(self, *arguments: Any, group: str = _OWN, **attributes: Any) -> None:
        super().__init__(*arguments, **attributes)
        self.group = group


def _set(_: click.Context, param: click.Parameter, value: bool) -> None:  # noqa: FBT001
    if value and param.name is not None:
        setattr(current(), param.name, True)
        current().verbose |= param.name == "debug"


def _common(*names: str, description: str) -> GroupedOption:
    return GroupedOption(
        names, is_flag=True, expose_value=False, callback=_set, help=description, group=OUTPUT
    )


COMMON: Sequence[GroupedOption] = (
    _common("-q", "--quiet", description="Print only results and errors."),
    _common("-v", "--verbose", description="Every detail of a plan, and each request on stderr."),
    _common("--debug", description="As -v; also what was loaded and decided, and where it failed."),
    _common("--no-color", "no_colour", description="Print no colours, as with NO_COLOR."),
)
"""Options of every command, before or after its name."""


class HasCommonOptions(click.Command):
    """A command with the common options. An option that was removed says what to use instead."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse arguments. Raises UsageError, and BadUsage for an option that was removed."""
        given = tuple(args)
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            refuse_removed(error.option_name, str(self.name), "options", of=str(self.name))
            name = next(filter(_APPROVES.__contains__, given), None)
            if name is not None and any("--auto-approve" in param.opts for param in self.params):
                message = f"No such option '{name}'. Did you mean '--auto-approve'?"
                raise click.UsageError(message, ctx) from None
            raise

    def get_help_option_names(self, ctx: click.Context) -> list[str]:
        """Return the names of --help, whatever context is first: click keeps the option."""
        del ctx
        return ["-h", "--help"]

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return its parameters, the common options before --help."""
        *own, help_option = super().get_params(ctx)
        return [*own, *COMMON, help_option]


class Command(HasCommonOptions):
    """A command whose help has grouped options, examples and a page of the documentation.

    `examples` are pairs of a command line, without the program's name, and what it does.
    `page` is the path of the page in the repository.
    """

    def __init__(
        self,
        *arguments: Any,
        examples: Sequence[tuple[str, str]],
        page: str,
        **attributes: Any,
    ) -> None:
        super().__init__(*arguments, **attributes)
        self.examples = examples
        self.page = page

    def records(self, ctx: click.Context) -> Mapping[str, Sequence[tuple[str, str]]]:
        """Return the names and descriptions of parameters by heading.

        Its own options come first, then those of other groups as they occur.
        """
        groups: dict[str, list[tuple[str, str]]] = {_ARGUMENTS: [], _OWN: []}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None and record[1]:
                groups.setdefault(_group_of(param), []).append(record)
        in_order = sorted(filter(groups.get, groups), key=lambda name: name == OUTPUT)
        return {group: groups[group] for group in in_order}

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options by heading."""
        for group, records in self.records(ctx).items():
            with formatter.section(group):
                formatter.write_dl(records)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples and the page of the documentation."""
        del ctx
        with formatter.section("Examples"):
            for line in self._example_lines():
                # Written as they are: a wrapped command can't be copied.
                formatter.write(f"{line}\n")
        formatter.write(f"\nDocumentation: {self.page}\n")

    def _example_lines(self) -> Iterator[str]:
        for number, (command, meaning) in enumerate(self.examples):
            if number:
                yield ""
            yield f"  # {meaning}"
            yield f"  $ reconciler {command}"


def _group_of(param: click.Parameter) -> str:
    if isinstance(param, GroupedOption):
        return param.group
    if isinstance(param, click.Argument):
        return _ARGUMENTS
    return OUTPUT if "--help" in param.opts else _OWN


def option(*names: str, group: str = _OWN, **attributes: Any) -> Callable[[_Function], _Function]:
    """Add an option that the help lists under a heading."""
    return click.option(*names, cls=GroupedOption, group=group, **attributes)


def command(
    name: str, *, examples: Sequence[tuple[str, str]], page: str
) -> Callable[[Callable[..., Any]], click.Command]:
    """Make a function a command. Its docstring is the help."""
    return click.command(name, cls=Command, examples=examples, page=page)


def refuse_removed(name: str, *tables: str, of: str = "") -> None:
    """Raise BadUsage for a name that a table of removed.toml has. `of` is its command."""
    from reconciler.packaged import use_instead

    for table in tables:
        if (hint := use_instead(name, table)) is not None:
            raise BadUsage(f"'{f'{of} {name}'.lstrip()}' was removed", hint=hint)
