"""Help texts of commands: examples, names of members, and the part of a long text that most users need."""

from __future__ import annotations

import re
from inspect import cleandoc
from typing import Any

import typer
from typer.core import TyperCommand

from flashsim.core.errors import RefusedError
from flashsim.operations.member_names import names
from flashsim.operations.operation import name_now

#: Its home differs between versions of Typer.
_UsageError: Any = typer.BadParameter.__mro__[1]
#: Width of a help text; a longer example goes on in a line of its own.
_WIDTH = 80
#: A longer help text is shown in part: some paragraphs and examples, and the options that are not seldom needed.
_LINES, _PARAGRAPHS, _EXAMPLES = 60, 2, 2
_EXAMPLE = re.compile(r"^( *)(flashsim .*(?:\\\n.*)*)$", re.MULTILINE)
_PLACE = re.compile(r"\{([a-z_]+)\}")
_HEADING = "Examples:\n\n\b\n"


class CommandWithHelp(TyperCommand):
    """A command whose help text may hold examples, and places for the names of a kind."""

    seldom: set[str]  #: Parameters that only the whole help shows.
    titles: dict[str, str]  #: Options by parameter.

    def __init__(self, name: str | None, *, help: str | None = None, **rest: Any) -> None:
        super().__init__(name, help=with_examples(help), **rest)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse a command line; a former name of an option is refused with the one that it has now."""
        try:
            return super().parse_args(ctx, args)
        except _UsageError as problem:
            former = getattr(problem, "option_name", "").removeprefix("--")
            if now := name_now(former, {option.removeprefix("--") for each in self.params for option in each.opts}):
                raise RefusedError(f"--{former}: it is --{now} now") from None
            raise

    def whole_help(self, ctx: Any) -> str:
        """The help text with all options and examples."""
        return str(super().get_help(ctx))

    def get_help(self, ctx: Any) -> str:
        """The help text; of a long one the part that most users need."""
        whole = self.whole_help(ctx)
        if len(whole.splitlines()) <= _LINES:
            return whole
        text, hidden = self.help, [each for each in self.params if each.name in self.seldom]
        self.help = _part(text or "")
        try:
            for each in hidden:
                each.hidden = True  # type: ignore[attr-defined]
            return f"{super().get_help(ctx)}\n\n--help-all shows {len(hidden)} more options and all examples."
        finally:
            self.help = text
            for each in hidden:
                each.hidden = False  # type: ignore[attr-defined]

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """The help text, with the names that exist now in place of ``{joins}`` and the like."""
        listed = dict[str, str]()
        for parameter in self.params:
            if text := getattr(parameter, "help", None):
                parameter.help = _with_names(text, self.titles.get(str(parameter.name), ""), listed)  # type: ignore[attr-defined]
        super().format_help(ctx, formatter)


def _with_names(text: str, title: str, listed: dict[str, str]) -> str:
    """A text with the names of a kind, which only the first option lists that takes them."""

    def listing(place: re.Match[str]) -> str:
        first = listed.setdefault(place[1], title)
        return f"as for {first}" if first != title else ", ".join(names(place[1]))

    return _PLACE.sub(listing, text)


def show_whole_help(ctx: typer.Context, value: bool) -> None:
    """Print all of a command's help text, and end the command."""
    if value:
        assert isinstance(ctx.command, CommandWithHelp)
        typer.echo(ctx.command.whole_help(ctx))
        raise typer.Exit


def command_help(docstring: str) -> str:
    """The part of an operation's docstring that the command shows: without numpydoc's examples of Python."""
    return cleandoc(docstring).partition("\nExamples\n--------\n")[0].rstrip()


def with_examples(text: str | None) -> str | None:
    r"""A help text whose literal blocks (after ``::``) are not wrapped, but for commands: the mark ``\b`` tells the formatter so."""
    return _EXAMPLE.sub(_wrap_command, text.replace("::\n\n    ", ":\n\n\b\n    ")) if text else text


def _part(text: str) -> str:
    """The first paragraphs and examples of a help text."""
    description, heading, examples = text.partition(_HEADING)
    commands = re.split(r"(?m)^(?=    flashsim )", examples)
    return "\n\n".join(description.rstrip().split("\n\n")[:_PARAGRAPHS]) + "\n\n" + heading + "".join(commands[: _EXAMPLES + 1]).rstrip()


def _wrap_command(example: re.Match[str]) -> str:
    """A command in lines that end as a shell wants it, each begun by an option."""
    lines = [example[1]]
    for part in re.split(r" (?=--)", re.sub(r"\s*\\\n\s*", " ", example[2])):
        if len(lines[-1]) + len(part) > _WIDTH - len("     \\"):  # two of them stand before each line
            lines.append(f"{example[1]}   ")
        lines[-1] += part if lines[-1] == example[1] else f" {part}"
    return " \\\n".join(lines)
