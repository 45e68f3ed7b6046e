"""A command made of an operation: its arguments and options, its help, its output files, and what it prints."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from flashsim.core.errors import FlashsimWarning, InvalidParameterError
from flashsim.core.preset_files import printable
from flashsim.operations.commands.shared import CommandWithExamples, command_help
from flashsim.operations.commands.values import completes
from flashsim.operations.face._fields import Field
from flashsim.operations.face._operation import fields, parsed, perform
from flashsim.operations.face._outcome import JSON, File, Listing, Outcome
from flashsim.studies.presentation.terminal import say
from flashsim.studies.runs.outputs import Outputs

if TYPE_CHECKING:
    import pandas as pd

_FORCE = Annotated[bool, typer.Option("--force", help="Replace output files that exist.")]


def command(function: Callable[..., Outcome | pd.DataFrame], name: str, app: typer.Typer | None = None) -> Any:
    """A command of an operation, in a group or by itself."""
    operation: Callable[..., Outcome | pd.DataFrame] = function.__wrapped__  # type: ignore[attr-defined]
    declared = fields(operation)
    files = {_variable(each): each for each in (*getattr(get_type_hints(operation)["return"], "FILES", ()), JSON)}

    def run(**given: Any) -> None:
        arguments = {each.name: each.default for each in signature(operation).parameters.values() if each.kind is not Parameter.VAR_KEYWORD}
        with Outputs(given["force"]) as outputs, warnings_as_lines():
            for argument, field in declared.items():
                for one in field.reads(given) if callable(field.reads) else _read(given[argument]) if field.reads else ():
                    outputs.spare(field.called(argument), one)
            for argument, field in declared.items():
                value = field.fixed(given) if field.fixed else given[argument]
                arguments[argument] = outputs.file(field.called(argument), value) if field.writes and value else value
            targets = [(file, _target(outputs, file, given[each]), given[each]) for each, file in files.items() if given[each]]
            outcome = perform(operation, parsed(operation, arguments, lambda each, field: field.called(each)))
            outcome = outcome if isinstance(outcome, Outcome) else Listing.of(outcome)
            say(*outcome.printed())
            for file, target, named in targets:
                file.write(outcome, target, named)
        if outcome.status:
            raise typer.Exit(outcome.status)

    defaults = {name: each.default for name, each in signature(operation).parameters.items()}
    made = {each: _parameter(each, field, defaults[each]) for each, field in declared.items() if not field.fixed}
    for each, file in files.items():
        option = typer.Option(file.option, metavar=file.metavar, help=file.help)
        made[each] = Parameter(each, Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[Path | None, option])
    made.setdefault("force", Parameter("force", Parameter.KEYWORD_ONLY, default=False, annotation=_FORCE))
    run.__signature__ = Signature(list(made.values()))  # type: ignore[attr-defined]
    run.__annotations__ = {each: parameter.annotation for each, parameter in made.items()}
    run.__doc__ = command_help(operation.__doc__ or "")
    group = app or typer.Typer(rich_markup_mode=None, add_completion=False)
    group.command(name, cls=CommandWithExamples)(run)
    return group


def _read(given: Any) -> list[Path]:
    """The files that an argument names, each perhaps behind a name and ``=``."""
    named = [each.rpartition("=")[2] for each in ([given] if isinstance(given, str) else given or ())]
    from flashsim.storage.source import source_file  # with Numba, for which no help need wait

    return [source_file(each) or Path(each) for each in named]


def _variable(file: File) -> str:
    return file.option.removeprefix("--").replace("-", "_") + "_"


def _target(outputs: Outputs, file: File, path: Path) -> Path:
    if file.endings and path.suffix not in file.endings:
        raise InvalidParameterError(file.option, repr(str(path)), f"its name must end in {', '.join(file.endings)}")
    return outputs.folder(file.option, path) if file.folder else outputs.file(file.option, path)


def _parameter(name: str, field: Field, default: Any) -> Parameter:
    more: dict[str, Any] = {
        "metavar": field.metavar,
        "help": field.help,
        "autocompletion": completes(*field.completes) if field.completes else None,
    }
    option = typer.Argument(**more) if field.argument else typer.Option(*field.options(name), **more)
    typed: Any = Path if field.writes else field.typed
    default = Parameter.empty if field.needed else default
    if field.several:
        typed = list[typed]
        default = [default] if isinstance(default, str) else list(default) if isinstance(default, tuple) and default else default
    if default is Parameter.empty or default is None or default == ():
        default = default or None
        typed = typed if default is Parameter.empty else typed | None
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[typed, option])


@contextmanager
def warnings_as_lines() -> Iterator[None]:
    """Say each warning of flashsim's own once, in a line on stderr, although what is warned of may be met several times."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", FlashsimWarning)
        usual, said = warnings.showwarning, set[str]()

        def show(message: Any, category: type[Warning], *where: Any, **more: Any) -> None:
            if not issubclass(category, FlashsimWarning):
                usual(message, category, *where, **more)
            elif str(message) not in said:
                said.add(str(message))
                print(f"flashsim: warning: {' '.join(printable(str(message)).split())}", file=sys.stderr)

        warnings.showwarning = show
        yield
