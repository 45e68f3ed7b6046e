"""The reference of the command line as Markdown: what ``--help`` of every command says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import typer
from typer.core import TyperGroup

from flashsim.command_line import app

#: Longer than any fence within a help text.
FENCE = "`" * 4
#: Options in a text, which typographic dashes would spoil.
_OPTION = re.compile(r"(--[a-z][\w-]*)")


def write_commands(file: Path) -> None:
    """Write a section for each command, its arguments and options with an anchor each."""
    group = typer.main.get_command(app)
    file.parent.mkdir(exist_ok=True)
    file.write_text("\n\n".join(_sections(group, group.context_class(group, info_name="flashsim"), 2)) + "\n", encoding="utf-8")


def _sections(command: Any, context: Any, level: int) -> Iterator[str]:
    command.get_help(context)  # puts the names of members into the texts of options
    yield f"{'#' * level} {context.command_path}"
    yield _block("text", " ".join(command.get_usage(context).removeprefix("Usage: ").split()))
    yield from map(_paragraph, (command.help or "").split("\n\n"))
    yield _block(f"{{program}} {context.command_path}", "")
    for parameter in command.get_params(context):
        if (record := parameter.get_help_record(context)) and record[0] != "--help":
            name = record[0].partition(" <")[0] if parameter.param_type_name == "argument" else record[0]
            yield _block(f"{{option}} {name}", _text(record[1]))
    if isinstance(command, TyperGroup):
        for name in command.list_commands(context):
            _, member, _ = command.resolve_command(context, [name])
            yield from _sections(member, member.context_class(member, info_name=name, parent=context), level + 1)


def _paragraph(text: str) -> str:
    r"""A paragraph of a help text; the mark ``\b`` stands before what is not to be wrapped."""
    return _block("sh", dedent(text.removeprefix("\b\n"))) if text.startswith("\b") else _text(text)


def _text(words: str) -> str:
    """Words with options as code, and no sign that means something to Markdown."""
    parts = _OPTION.split(" ".join(words.split()))
    return "".join(f"`{part}`" if place % 2 else re.sub(r"([^\w\s.,:;%'\"/()=-])", r"\\\1", part) for place, part in enumerate(parts))


def _block(kind: str, text: str) -> str:
    return f"{FENCE}{kind}\n{text}\n{FENCE}"
