"""The command of an operation: its arguments and options, its help, its output files, and its output."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from inspect import Parameter, Signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from flashsim.core.errors import (
    FlashsimError,
    FlashsimWarning,
    InvalidParameterError,
    StandardOutputError,
    UnknownNameError,
    printable,
)
from flashsim.experiments.runs import interrupts
from flashsim.experiments.runs.outputs import Outputs
from flashsim.operations.fields import Field
from flashsim.operations.help_texts import CommandWithHelp, command_help, show_whole_help
from flashsim.operations.member_names import names
from flashsim.operations.operation import fields, name_place, perform
from flashsim.operations.outcome import JSON, Listing, Outcome, OutputFile

if TYPE_CHECKING:
    import pandas as pd

_FORCE = Annotated[bool, typer.Option("--force", help="Replace output files that exist.")]
_ALL = {"callback": show_whole_help, "is_eager": True, "expose_value": False}
_HELP_ALL = Annotated[bool, typer.Option("--help-all", help="Show all options and examples.", **_ALL)]


def command(function: Callable[..., Outcome | pd.DataFrame], name: str) -> typer.Typer:
    """The command of an operation."""
    operation: Callable[..., Outcome | pd.DataFrame] = function.__wrapped__  # type: ignore[attr-defined]
    declared = fields(operation)
    titles = {each: field.name_in_messages(each) for each, field in declared.items()}
    own_files = getattr(get_type_hints(operation)["return"], "FILES", ())
    files = {f"{each.option.removeprefix('--').replace('-', '_')}_": each for each in (*own_files, JSON)}
    by_option = {each: field for each, field in declared.items() if not field.constant}

    def run(**values: Any) -> None:
        from flashsim.experiments.presentation.terminal import say  # with pandas, for which no help need wait

        for each, field in by_option.items():
            if not (field.argument and field.several):  # words behind "--" may look like options
                _refuse_option(titles[each], values[each])
        for each, file in files.items():
            _refuse_option(file.option, values[each])
        values |= {each: _number(values[each], field.kind) for each, field in by_option.items()}
        with Outputs(values["force"]) as outputs, warnings_as_lines(), _naming(declared, titles, values):
            for each, field in declared.items():
                for path in _inputs(each, field, values):
                    outputs.spare(titles[each], path)
            arguments = {each: field.constant(values) if field.constant else values[each] for each, field in declared.items()}
            written = {each: titles[each] for each, field in declared.items() if field.writes and arguments[each]}
            arguments |= {each: outputs.file(option, arguments[each]) for each, option in written.items()}
            targets = [(file, _target(outputs, file, values[each]), values[each]) for each, file in files.items() if values[each]]
            result = perform(operation, arguments, titles)
            outcome = result if isinstance(result, Outcome) else Listing.of(result)
            for file, target, path in targets:
                file.write(outcome, target, path)
            parts = list(outcome.printout())
        interrupts.release()
        try:
            say(*parts)
        except StandardOutputError as problem:
            options = [*written.values(), *(file.option for file, _, _ in targets)]
            raise StandardOutputError(problem.reason, outcome.status, options) from None
        if outcome.status:
            raise typer.Exit(outcome.status)

    taken = {each: _annotation_of(each, field) for each, field in by_option.items()}
    for each, file in files.items():
        taken[each] = Annotated[Path | None, typer.Option(file.option, metavar=file.metavar, help=file.help)], None
    taken.setdefault("force", (_FORCE, False))
    taken["help_all"] = _HELP_ALL, False
    options = [Parameter(each, Parameter.KEYWORD_ONLY, default=default, annotation=kind) for each, (kind, default) in taken.items()]
    run.__signature__ = Signature(options)  # type: ignore[attr-defined]
    run.__annotations__ = {each: kind for each, (kind, _) in taken.items()}
    run.__doc__ = command_help(operation.__doc__ or "")
    app = typer.Typer(rich_markup_mode=None, add_completion=False)
    seldom = {each for each, field in by_option.items() if field.seldom}
    app.command(name, cls=type("Command", (CommandWithHelp,), {"seldom": seldom, "titles": titles}))(run)
    return app


def _refuse_option(option: str, value: Any) -> None:
    """Refuse an option's name where a value belongs: the parser takes whatever comes next, and a file would be written under that name."""
    for each in value if isinstance(value, list) else [value]:
        if isinstance(each, str | Path) and str(each).startswith("--"):
            raise InvalidParameterError(option, repr(str(each)), f"its value is missing; a file of that name is ./{each}")


@contextmanager
def _naming(declared: Mapping[str, Field], titles: Mapping[str, str], values: Mapping[str, Any]) -> Iterator[None]:
    """Refusals of a value by what lies below call its option by name, which is that of the parameter, or is given the unknown name."""
    try:
        yield
    except FlashsimError as problem:
        parameter, colon, rest = str(problem).partition(":")
        name = parameter.replace(" ", "_").replace("-", "_")
        if name in declared and (isinstance(problem, InvalidParameterError) or not declared[name].argument):
            problem.args = (titles[name] + colon + rest,)
        elif isinstance(problem, UnknownNameError) and not parameter.startswith("--"):
            name_place(problem, {titles[each]: values.get(each) for each, field in declared.items() if not field.argument})
        raise


def _number(value: Any, kind: type) -> Any:
    """The number that a text is, or each of a list; or the text, which the field refuses in its own words."""
    if kind in (int, float) and isinstance(value, str | list):
        with suppress(ValueError):
            return [kind(each) for each in value] if isinstance(value, list) else kind(value)
    return value


def _inputs(name: str, field: Field, values: Mapping[str, Any]) -> Iterator[Path]:
    """The files that an argument names, which none that is written may be: a source, perhaps behind a name and ``=``, or any part."""
    if field.constant:
        return
    given = values[name]
    texts = [each for each in (given if isinstance(given, list | tuple) else [given]) if isinstance(each, str | Path)]
    if callable(field.reads):
        yield from field.reads(values)
    elif field.reads:
        from flashsim.storage.source import source_file  # with Numba, for which no help need wait

        yield from (source_file(path) or Path(path) for path in (str(each).rpartition("=")[2] for each in texts))
    if not field.writes:
        yield from (Path(part) for text in texts for part in str(text).split(",") if os.path.isfile(part))


def _target(outputs: Outputs, file: OutputFile, path: Path) -> Path:
    if file.endings and path.suffix not in file.endings:
        raise InvalidParameterError(file.option, repr(str(path)), f"its name must end in {', '.join(file.endings)}")
    return outputs.folder(file.option, path) if file.folder else outputs.file(file.option, path)


def _annotation_of(name: str, field: Field) -> tuple[Any, Any]:
    """The type of a parameter with Typer's declaration, and its default."""
    is_number, default = field.kind in (int, float), Parameter.empty if field.required else field.default
    more: dict[str, Any] = {"metavar": field.metavar or ("NUMBER" if is_number else None), "help": field.help}
    if field.completes:
        more["autocompletion"] = lambda incomplete: [
            each for kind in field.completes for each in names(kind) if each.startswith(incomplete)
        ]
    kind: Any = Path if field.writes else str if is_number else field.kind
    if field.several:
        kind = list[kind]
        default = [default] if isinstance(default, str) else list(default) if isinstance(default, tuple) and default else default
    if default is None or default == ():
        default, kind = None, kind | None
    return Annotated[kind, typer.Argument(**more) if field.argument else typer.Option(field.option_of(name), **more)], default


@contextmanager
def warnings_as_lines() -> Iterator[None]:
    """Print each warning of flashsim's own once, in a line on stderr."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", FlashsimWarning)
        usual, messages = warnings.showwarning, set[str]()

        def show(message: Any, category: type[Warning], *where: Any, **more: Any) -> None:
            if not issubclass(category, FlashsimWarning):
                usual(message, category, *where, **more)
            elif str(message) not in messages:
                messages.add(str(message))
                print(f"flashsim: warning: {' '.join(printable(str(message)).split())}", file=sys.stderr)

        warnings.showwarning = show
        yield
