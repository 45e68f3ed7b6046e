"""The command ``flashsim``: its subcommands, and errors as one line each."""

import os
import sys
from contextlib import nullcontext
from importlib import import_module
from importlib.machinery import SourceFileLoader
from importlib.util import find_spec
from inspect import cleandoc
from io import StringIO
from traceback import walk_tb
from types import CodeType
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from flashsim import __version__
from flashsim.command_table import COMMANDS, GROUPS, Places
from flashsim.core.errors import LONGEST_WORD, FlashsimError, StandardOutputError, printable, shorten
from flashsim.core.preset_files import ALLOW_CODE
from flashsim.experiments.presentation.progress import screen
from flashsim.experiments.runs import interrupts
from flashsim.operations.command import command
from flashsim.operations.help_texts import command_help, with_examples

#: Usage errors of Typer derive from this class, whose home differs between its versions.
_ClickException: Any = typer.BadParameter.__mro__[2]

#: Bad input, and anything else that flashsim refuses.
REFUSED = 2
INTERRUPTED = 130

#: The longest message that is shown whole.
_LONGEST_LINE = 2000


class Commands(TyperGroup):
    """Commands imported when they are run: some load libraries that take longer than all the rest of a start."""

    places: Places

    def __init__(self, *, help: str | None = None, places: Places = COMMANDS, **rest: Any) -> None:
        super().__init__(help=with_examples(help), **rest)
        self.places = places
        self.commands.update({name: TyperCommand(name) for name in places})

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The entry of a command in lists; the command itself once it is resolved."""
        entry = self.commands.get(cmd_name)
        if entry and entry.help is None:
            place = self.places[cmd_name]
            entry.help = with_examples(_docstring(place) if isinstance(place, str) else _group_help(cmd_name))
        return entry

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that arguments begin with, imported."""
        place = self.places.get(args[0])
        if isinstance(place, str):
            module, _, name = place.partition(":")
            resolved = typer.main.get_command(command(getattr(import_module(module), name), args[0]))
            resolved.name = args[0]
            self.commands[args[0]] = resolved
        elif place:
            self.commands[args[0]] = Commands(
                name=args[0], help=_group_help(args[0]), places=place, rich_markup_mode=None, no_args_is_help=False
            )
        return super().resolve_command(ctx, args)


def _group_help(name: str) -> str:
    summary, *examples = cleandoc(GROUPS[name]).splitlines()
    return "\n".join([summary, "", "Examples::", "", *(f"    {example}" for example in examples)])


def _docstring(place: str) -> str:
    """The help text of a command: its function's docstring, of the compiled module, which is not run as it would load NumPy and pandas."""
    module, _, name = place.partition(":")
    spec = find_spec(module)
    assert spec is not None and isinstance(spec.loader, SourceFileLoader)
    code = spec.loader.get_code(module)
    assert code is not None
    function = next(each for each in code.co_consts if isinstance(each, CodeType) and each.co_name == name)
    return command_help(function.co_consts[0] or "")


class OneLineErrors(Commands):
    """A group of commands whose errors are one line on stderr and exit code 2, never a traceback."""

    def main(self, *args: Any, standalone_mode: bool = True, **more: Any) -> Any:
        """Run a command, and exit the process unless `standalone_mode` is off."""
        more["standalone_mode"] = False
        if not standalone_mode:
            return super().main(*args, **more)
        status, is_interrupted = None, False
        try:
            status = super().main(*args, **more)
            sys.stdout.flush()
        except SystemExit as problem:  # not ours
            if _of_typer(problem) and not isinstance(problem.__context__, OSError):  # a completion
                raise
            _say(f"a Python file that the command runs ended it (SystemExit: {problem.code})")
            status = REFUSED
        except (KeyboardInterrupt, typer.Abort):
            is_interrupted = True
        except (FlashsimError, OSError, MemoryError, _ClickException) as problem:
            status = _report(problem)
        except Exception:
            if not interrupts.is_interrupted():
                raise
        if is_interrupted or interrupts.is_interrupted():
            status = INTERRUPTED
            kept = getattr(sys.modules.get("flashsim.experiments.runs.kept"), "kept_here", ())
            _say("interrupted; no results were written" + (f", but finished runs are kept for next time ({len(kept):,})" if kept else ""))
        sys.exit(status or 0)


def _report(problem: BaseException) -> int:
    if isinstance(problem, StandardOutputError):
        sys.stdout = StringIO()  # what is left goes nowhere
    if isinstance(problem, MemoryError):
        _say("out of memory; use a smaller scale or fewer jobs")
    elif isinstance(problem, _ClickException):
        _say(problem.format_message())
    elif isinstance(problem, OSError) and problem.strerror:
        _say(f"{problem.filename}: {problem.strerror}" if problem.filename else problem.strerror)
    else:
        _say(str(problem))
    return problem.status if isinstance(problem, StandardOutputError) else REFUSED


def _of_typer(problem: SystemExit) -> bool:
    *_, (frame, _) = walk_tb(problem.__traceback__)
    return str(frame.f_globals.get("__name__")).startswith("typer.")


def _say(message: str) -> None:
    words = (shorten(word, LONGEST_WORD) for word in printable(message).split())
    print(f"flashsim: {shorten(' '.join(words), _LONGEST_LINE)}", file=sys.stderr)


app = typer.Typer(name="flashsim", cls=OneLineErrors, rich_markup_mode=None, pretty_exceptions_enable=False, invoke_without_command=True)


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
    with nullcontext() if "_FLASHSIM_COMPLETE" in os.environ else screen.around("working"):  # a shell shows its own line
        app(prog_name="flashsim")
