"""What several commands share: options, and help texts whose examples keep their lines."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

JsonFile = Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Also write the result as JSON.")]
YesDestroy = Annotated[
    str | None, typer.Option("--yes-destroy", metavar="/dev/NAME", help="The block device that --allow-write destroys, by name.")
]
Force = Annotated[bool, typer.Option("--force", help="Replace output files that exist.")]


def with_examples(text: str | None) -> str | None:
    r"""A help text whose literal blocks (after ``::``) are not wrapped: the mark ``\b`` tells the formatter so."""
    return text.replace("::\n\n    ", ":\n\n\b\n    ") if text else text


class CommandWithExamples(TyperCommand):
    """A command whose docstring may hold examples."""

    def __init__(self, name: str | None, *, help: str | None = None, **rest: Any) -> None:
        super().__init__(name, help=with_examples(help), **rest)


class Group(TyperGroup):
    """A group of commands whose docstring may hold examples."""

    def __init__(self, *, help: str | None = None, **rest: Any) -> None:
        super().__init__(help=with_examples(help), **rest)
