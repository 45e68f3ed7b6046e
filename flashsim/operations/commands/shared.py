"""Commands and groups of commands whose help texts hold examples, which keep their lines."""

from __future__ import annotations

import re
from inspect import cleandoc
from typing import Any

from typer.core import TyperCommand, TyperGroup

from flashsim.operations.commands.values import filled


def command_help(docstring: str) -> str:
    """The part of an operation's docstring that the command shows: without numpydoc's examples of Python."""
    return cleandoc(docstring).partition("\nExamples\n--------\n")[0].rstrip()


#: A help text is this wide; an example that is longer goes on in a line of its own.
_WIDTH = 80
_EXAMPLE = re.compile(r"^( *)(flashsim .*(?:\\\n.*)*)$", re.MULTILINE)


def with_examples(text: str | None) -> str | None:
    r"""A help text whose literal blocks (after ``::``) are not wrapped, but for commands: the mark ``\b`` tells the formatter so."""
    return _EXAMPLE.sub(_continued, text.replace("::\n\n    ", ":\n\n\b\n    ")) if text else text


def _continued(example: re.Match[str]) -> str:
    """A command in lines that end as a shell wants it, each begun by an option."""
    lines = [example[1]]
    for part in re.split(r" (?=--)", re.sub(r"\s*\\\n\s*", " ", example[2])):
        if len(lines[-1]) + len(part) > _WIDTH - len("     \\"):  # two of them stand before each line
            lines.append(f"{example[1]}   ")
        lines[-1] += part if lines[-1] == example[1] else f" {part}"
    return " \\\n".join(lines)


class CommandWithExamples(TyperCommand):
    """A command whose docstring may hold examples."""

    def __init__(self, name: str | None, *, help: str | None = None, **rest: Any) -> None:
        super().__init__(name, help=with_examples(help), **rest)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """The help text, with what exists now in place of ``{joins}`` and the like."""
        for parameter in self.params:
            if text := getattr(parameter, "help", None):
                parameter.help = filled(text)  # type: ignore[attr-defined]
        super().format_help(ctx, formatter)


class Group(TyperGroup):
    """A group of commands whose docstring may hold examples."""

    def __init__(self, *, help: str | None = None, **rest: Any) -> None:
        super().__init__(help=with_examples(help), **rest)
