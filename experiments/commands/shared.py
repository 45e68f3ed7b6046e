"""What several commands share: options, and help texts whose examples keep their lines."""

from __future__ import annotations

import re
from inspect import cleandoc
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from experiments.commands.values import completes, filled
from flashsim.core.units import parse_size

JsonFile = Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Also write the result as JSON.")]
YesDestroy = Annotated[
    str | None, typer.Option("--yes-destroy", metavar="/dev/NAME", help="The block device that --allow-write destroys, by name.")
]
Force = Annotated[bool, typer.Option("--force", help="Replace output files that exist.")]

PageFormatName = Annotated[
    str | None,
    typer.Option(
        metavar="FORMAT",
        help="How pages hold rows: one of {page_formats}; or a Python file. By default sqlite, or what the join needs.",
        autocompletion=completes("page_formats"),
    ),
]
FirstJoin = Annotated[
    str | None,
    typer.Option(metavar="JOIN", help="What digest joins the digests with; sort-merge by default.", autocompletion=completes("joins")),
]
FetchStrategyName = Annotated[
    str | None,
    typer.Option(
        metavar="STRATEGY",
        help="How digest fetches rows, one of {strategies}, planned by default; or a Python file.",
        autocompletion=completes("strategies"),
    ),
]
CacheShare = Annotated[float | None, typer.Option(help="Of graph-based: room for k (d + 1) pages, d the largest degree; 1 by default.")]
FetchPolicy = Annotated[
    str | None,
    typer.Option(
        "--policy",
        metavar="POLICY",
        help="Of pooled: which page is replaced, such as lirs or lru-k:k=3, of {policies}; or a Python file. lru by default.",
        autocompletion=completes("policies"),
    ),
]
KernelJoin = Annotated[
    str | None,
    typer.Option(metavar="JOIN", help="What flash-join joins keys with; hybrid-hash by default.", autocompletion=completes("joins")),
]
ColumnNames = Annotated[
    str | None, typer.Option(metavar="LIST", help="Columns of the result, such as R.c_name,S.o_totalprice, for rare and flash-join.")
]
PartitionMethodName = Annotated[
    str | None,
    typer.Option(
        "--partition",
        metavar="METHOD",
        help="How grace-hash and hybrid-hash make buckets, one of {partition_methods}, traditional by default; or a Python file.",
        autocompletion=completes("partition_methods"),
    ),
]
SubBuffer = Annotated[
    str | None, typer.Option("--sub-buffer", metavar="SIZE", help="Of n-hash: how output buffers are divided; 8KiB where they are larger.")
]
Strands = Annotated[int | None, typer.Option("--strands", metavar="K", help="Of para-hash: how many work together; 1 by default.")]
Cores = Annotated[int | None, typer.Option("--cores", metavar="C", help="Of a simulated machine; by default those of the CPU preset.")]


def sub_buffer_size(told: str | None) -> int | None:
    """Bytes of a sub-buffer, if one is asked for."""
    return None if told is None else parse_size(told, "--sub-buffer")


def column_names(told: str | None) -> tuple[str, ...] | None:
    """The names in a list of columns, if there is one."""
    return None if told is None else tuple(told.split(","))


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
