"""The command ``flashsim``: its subcommands, and errors as one line each."""

import ast
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from traceback import walk_tb
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from flashsim import __version__
from flashsim.core.errors import FlashsimError, shortened
from flashsim.core.preset_files import ALLOW_CODE, printable
from flashsim.operations import commands, face
from flashsim.operations.commands.shared import Group, command_help, with_examples
from flashsim.studies.presentation.progress import screen
from flashsim.studies.runs import interrupts

#: Usage errors of Typer derive from this class, whose home differs between its versions.
_ClickException: Any = typer.BadParameter.__mro__[2]

#: The subcommands: a module of `flashsim.operations.commands`, whose `app` a function of its name heads; or an operation.
_COMMANDS = ("reproduce", "join", "fetch", "export", "device", "trace", "cache", "pool", "validate", "doctor")

#: Bad input, and anything else that flashsim refuses.
REFUSED = 2
INTERRUPTED = 130

#: The longest word, and message, that is shown whole.
_LONGEST_WORD, _LONGEST_LINE = 400, 2000


class OneLineErrors(Group):
    """A group of commands whose errors are one line on stderr and exit code 2, never a traceback."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a command, and exit the process unless `standalone_mode` is off."""
        if not standalone_mode:
            return super().main(args, prog_name, complete_var, False, windows_expand_args, **extra)
        try:
            status = super().main(args, prog_name, complete_var, False, windows_expand_args, **extra)
            if sys.stdout:  # None if the shell closed it
                sys.stdout.flush()
        except SystemExit as problem:  # not ours
            if _of_typer(problem):  # its answer to a broken pipe, or a completion
                raise
            _say(f"a Python file that the command runs ended it (SystemExit: {problem.code})")
            status = REFUSED
        except (FlashsimError, OSError, MemoryError, KeyboardInterrupt, typer.Abort, _ClickException) as problem:
            status = _report(problem)
        except Exception:
            if not interrupts.answered():
                raise
        if interrupts.answered():
            status = INTERRUPTED
        if status == INTERRUPTED:
            _say("interrupted; nothing was written")
        sys.exit(status or 0)


class Commands(OneLineErrors):
    """The subcommands, each imported when it is run: some load libraries that take longer than all the rest of a start."""

    def __init__(self, **rest: Any) -> None:
        super().__init__(**rest)
        self.commands.update({name: TyperCommand(name) for name in _COMMANDS})

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """What stands for a command in lists; the command itself once it is resolved."""
        command = self.commands.get(cmd_name)
        if command and command.help is None:
            command.help = _summary(cmd_name)
        return command

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that arguments begin with, imported."""
        if args[0] in _COMMANDS:
            self.commands[args[0]] = _imported(args[0])
        return super().resolve_command(ctx, args)


def _summary(name: str) -> str | None:
    """The help text of a subcommand, read without importing it."""
    source = _module(name).read_text(encoding="utf-8")
    functions = [each for each in ast.parse(source).body if isinstance(each, ast.FunctionDef)]
    return next(with_examples(command_help(ast.get_docstring(each) or "")) for each in functions if each.name == name)


def _module(name: str) -> Path:
    """The file of a subcommand."""
    place = Path(*commands.__path__, f"{name}.py")
    return place if place.exists() else Path(*face.__path__, f"{name}.py")


def _imported(name: str) -> Any:
    module = import_module(f"flashsim.operations.{_module(name).parent.name}.{name}")
    part = getattr(module, "app", None) or import_module("flashsim.operations.commands.declared").command(getattr(module, name), name)
    command = typer.main.get_command(part)
    command.name = name
    return command


def _report(problem: BaseException) -> int:
    if isinstance(problem, (KeyboardInterrupt, typer.Abort)):
        return INTERRUPTED
    if isinstance(problem, BrokenPipeError):  # the reader, such as `head`, has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    if isinstance(problem, MemoryError):
        _say("out of memory; use a smaller scale or fewer jobs")
    elif isinstance(problem, _ClickException):
        _say(problem.format_message())
    elif isinstance(problem, OSError) and problem.strerror:
        _say(f"{problem.filename}: {problem.strerror}" if problem.filename else problem.strerror)
    else:
        _say(str(problem))
    return REFUSED


def _of_typer(problem: SystemExit) -> bool:
    *_, (frame, _) = walk_tb(problem.__traceback__)
    return str(frame.f_globals.get("__name__")).startswith("typer.")


def _say(message: str) -> None:
    words = (shortened(word, _LONGEST_WORD) for word in printable(message).split())
    print(f"flashsim: {shortened(' '.join(words), _LONGEST_LINE)}", file=sys.stderr)


app = typer.Typer(
    name="flashsim",
    cls=Commands,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    invoke_without_command=True,
)


@app.callback()
def flashsim(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False,
    allow_code: Annotated[bool, typer.Option("--allow-code", help="Presets may name Python files, which are run.")] = False,
) -> None:
    r"""What a database algorithm costs on a storage device, and why.

    A formula predicts it and a simulated device shows it, side by side.

    Examples::

        flashsim reproduce do2009 --scale 0.01
        flashsim join bnl --r do2009:customer@0.1 --s do2009:orders@0.1 \
            --on c_custkey=o_custkey --device ocz-core-60gb --memory 1MiB
        flashsim device list
    """
    if allow_code:
        os.environ[ALLOW_CODE] = "1"
    if version:
        typer.echo(f"flashsim {__version__}")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main() -> None:
    with screen.around("working"):
        app(prog_name="flashsim")
