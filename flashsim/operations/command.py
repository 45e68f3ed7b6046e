"""The command of an operation: its arguments and options, its help, its output files, and its output."""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import import_module
from inspect import Parameter, Signature, cleandoc
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer
from typer.core import TyperCommand

from flashsim.core.errors import FlashsimError, FlashsimWarning, InvalidParameterError, StandardOutputError, UnknownNameError, printable
from flashsim.operations.fields import Field
from flashsim.operations.operation import fields, parameters, parse_arguments, perform
from flashsim.operations.outcome import JSON, Listing, Outcome, OutputFile
from flashsim.studies.runs import interrupts
from flashsim.studies.runs.outputs import Outputs

if TYPE_CHECKING:
    import pandas as pd

_FORCE = Annotated[bool, typer.Option("--force", help="Replace output files that exist.")]
#: Width of a help text; a longer example goes on in a line of its own.
_WIDTH = 80
_EXAMPLE = re.compile(r"^( *)(flashsim .*(?:\\\n.*)*)$", re.MULTILINE)
_PLACE = re.compile(r"\{([a-z_]+)\}")
#: Families of members by their names in help texts: package and name of each.
_FAMILIES = {
    "joins": ("algorithms.joins.base", "JOINS"),
    "strategies": ("algorithms.fetching.base", "FETCHING"),
    "partition_methods": ("algorithms.partitioning.base", "PARTITIONING"),
    "page_formats": ("flashsim.storage.page.base", "PAGE_FORMATS"),
    "placements": ("flashsim.storage.placement.base", "PLACEMENTS"),
    "formats": ("traces.format.base", "FORMATS"),
    "page_traces": ("traces.page_format.base", "PAGE_FORMATS"),
    "engines": ("traces.replay.base", "ENGINES"),
    "planners": ("algorithms.page_access.planners.base", "PLANNERS"),
    "policies": ("algorithms.replacement.base", "REPLACEMENT"),
    "designs": ("algorithms.extensions.base", "DESIGNS"),
    "restarts": ("algorithms.restart.base", "RESTARTS"),
    "workloads": ("traces.transactions.base", "WORKLOADS"),
    "benchmarks": ("traces.workload.base", "FAMILY"),
}


def command(function: Callable[..., Outcome | pd.DataFrame], name: str) -> typer.Typer:
    """The command of an operation."""
    operation: Callable[..., Outcome | pd.DataFrame] = function.__wrapped__  # type: ignore[attr-defined]
    declarations, defaults = fields(operation), {each.name: each.default for each in parameters(operation).values()}
    outputs_of = getattr(get_type_hints(operation)["return"], "FILES", ())
    files = {f"{each.option.removeprefix('--').replace('-', '_')}_": each for each in (*outputs_of, JSON)}

    words = {name for name, field in declarations.items() if field.argument and field.several}  # behind "--" these may look like options
    options_by_name = {
        name: field.name_in_messages(name) for name, field in declarations.items() if not field.constant and name not in words
    }
    options_by_name |= {name: file.option for name, file in files.items()}

    def run(**values: Any) -> None:
        from flashsim.studies.presentation.terminal import say  # with pandas, for which no help need wait

        for each, option in options_by_name.items():
            _refuse_options(option, values[each])
        values |= {each: _number(values[each], field.kind) for each, field in declarations.items() if not field.constant}
        arguments = {each: defaults[each] for each in declarations}
        with Outputs(values["force"]) as outputs, warnings_as_lines(), _naming(declarations, values):
            for argument, field in declarations.items():
                read = field.reads(values) if callable(field.reads) else _sources(values[argument]) if field.reads else ()
                for one in (*read, *(() if field.writes or field.constant else _files(values[argument]))):
                    outputs.spare(field.name_in_messages(argument), one)
            for argument, field in declarations.items():
                value = field.constant(values) if field.constant else values[argument]
                arguments[argument] = outputs.file(field.name_in_messages(argument), value) if field.writes and value else value
            targets = [(file, _target(outputs, file, values[each]), values[each]) for each, file in files.items() if values[each]]
            outcome = perform(operation, parse_arguments(operation, arguments, lambda each, field: field.name_in_messages(each)))
            outcome = outcome if isinstance(outcome, Outcome) else Listing.of(outcome)
            for file, target, path in targets:
                file.write(outcome, target, path)
            parts = list(outcome.printout())
        interrupts.release()
        try:
            say(*parts)
        except StandardOutputError as problem:
            written = [declarations[each].name_in_messages(each) for each, field in declarations.items() if field.writes and values[each]]
            written += [file.option for file, _, _ in targets]
            raise StandardOutputError(problem.reason, outcome.status, written) from None
        if outcome.status:
            raise typer.Exit(outcome.status)

    options = {each: _parameter(each, field, defaults[each]) for each, field in declarations.items() if not field.constant}
    for each, file in files.items():
        option = typer.Option(file.option, metavar=file.metavar, help=file.help)
        options[each] = Parameter(each, Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[Path | None, option])
    options.setdefault("force", Parameter("force", Parameter.KEYWORD_ONLY, default=False, annotation=_FORCE))
    run.__signature__ = Signature(list(options.values()))  # type: ignore[attr-defined]
    run.__annotations__ = {each: parameter.annotation for each, parameter in options.items()}
    run.__doc__ = command_help(operation.__doc__ or "")
    app = typer.Typer(rich_markup_mode=None, add_completion=False)
    app.command(name, cls=CommandWithExamples)(run)
    return app


def _refuse_options(option: str, value: Any) -> None:
    """Refuse an option's name where a value belongs: the parser takes whatever comes next, and a file would be written under that name."""
    for each in value if isinstance(value, list) else [value]:
        if isinstance(each, str | Path) and str(each).startswith("--"):
            raise InvalidParameterError(option, repr(str(each)), f"its value is missing; a file of that name is ./{each}")


@contextmanager
def _naming(declarations: Mapping[str, Field], values: Mapping[str, Any]) -> Iterator[None]:
    """Refusals of a value by what lies below call its option by name, which is that of the parameter, or is given the unknown name."""
    try:
        yield
    except FlashsimError as problem:
        parameter, colon, rest = str(problem).partition(":")
        name = parameter.replace(" ", "_").replace("-", "_")
        if name in declarations and (isinstance(problem, InvalidParameterError) or not declarations[name].argument):
            problem.args = (declarations[name].name_in_messages(name) + colon + rest, *problem.args[1:])
        elif isinstance(problem, UnknownNameError) and not parameter.startswith("--"):
            options = [each for each in declarations if not declarations[each].argument and _holds(values.get(each), problem.name)]
            if len(options) == 1:
                problem.args = (f"{declarations[options[0]].name_in_messages(options[0])}: {problem}", *problem.args[1:])
        raise


def _holds(value: Any, name: str) -> bool:
    """Whether an option's value, or one of several, is a name or has it as a part."""
    texts = [str(each) for each in (value if isinstance(value, list) else [value])]
    return any(name in (text, *re.split("[=:,]", text)) for text in texts)


def _number(value: Any, kind: type) -> Any:
    """The number that a text is, or each of a list; or the text, which the field refuses in its own words."""
    if kind in (int, float) and isinstance(value, str | list):
        with suppress(ValueError):
            return [kind(each) for each in value] if isinstance(value, list) else kind(value)
    return value


def _files(value: Any) -> list[Path]:
    """The files among an argument's parts, whatever these may name besides: members, presets."""
    texts = [each for each in (value if isinstance(value, list | tuple) else [value]) if isinstance(each, str | Path)]
    return [Path(part) for text in texts for part in str(text).split(",") if os.path.isfile(part)]


def _sources(value: Any) -> list[Path]:
    """The files that an argument names, each perhaps behind a name and ``=``."""
    paths = [each.rpartition("=")[2] for each in ([value] if isinstance(value, str) else value or ())]
    from flashsim.storage.source import source_file  # with Numba, for which no help need wait

    return [source_file(each) or Path(each) for each in paths]


def _target(outputs: Outputs, file: OutputFile, path: Path) -> Path:
    if file.endings and path.suffix not in file.endings:
        raise InvalidParameterError(file.option, repr(str(path)), f"its name must end in {', '.join(file.endings)}")
    return outputs.folder(file.option, path) if file.folder else outputs.file(file.option, path)


def _parameter(name: str, field: Field, default: Any) -> Parameter:
    completion = (lambda incomplete: completions(incomplete, field.completes)) if field.completes else None
    is_number = field.kind in (int, float)
    more: dict[str, Any] = {"metavar": field.metavar or ("NUMBER" if is_number else None), "help": field.help, "autocompletion": completion}
    option = typer.Argument(**more) if field.argument else typer.Option(*field.options(name), **more)
    kind: Any = Path if field.writes else str if is_number else field.kind
    default = Parameter.empty if field.required else default
    if field.several:
        kind = list[kind]
        default = [default] if isinstance(default, str) else list(default) if isinstance(default, tuple) and default else default
    if default is Parameter.empty or default is None or default == ():
        default = default or None
        kind = kind if default is Parameter.empty else kind | None
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, option])


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


class CommandWithExamples(TyperCommand):
    """A command whose help text may hold examples, and places for the names of a kind."""

    def __init__(self, name: str | None, *, help: str | None = None, **rest: Any) -> None:
        super().__init__(name, help=with_examples(help), **rest)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """The help text, with the names that exist now in place of ``{joins}`` and the like."""
        for parameter in self.params:
            if text := getattr(parameter, "help", None):
                parameter.help = _PLACE.sub(lambda place: ", ".join(values(place[1])), text)  # type: ignore[attr-defined]
        super().format_help(ctx, formatter)


def command_help(docstring: str) -> str:
    """The part of an operation's docstring that the command shows: without numpydoc's examples of Python."""
    return cleandoc(docstring).partition("\nExamples\n--------\n")[0].rstrip()


def with_examples(text: str | None) -> str | None:
    r"""A help text whose literal blocks (after ``::``) are not wrapped, but for commands: the mark ``\b`` tells the formatter so."""
    return _EXAMPLE.sub(_wrap_command, text.replace("::\n\n    ", ":\n\n\b\n    ")) if text else text


def _wrap_command(example: re.Match[str]) -> str:
    """A command in lines that end as a shell wants it, each begun by an option."""
    lines = [example[1]]
    for part in re.split(r" (?=--)", re.sub(r"\s*\\\n\s*", " ", example[2])):
        if len(lines[-1]) + len(part) > _WIDTH - len("     \\"):  # two of them stand before each line
            lines.append(f"{example[1]}   ")
        lines[-1] += part if lines[-1] == example[1] else f" {part}"
    return " \\\n".join(lines)


def completions(prefix: str, kinds: tuple[str | Callable[[], Iterable[str]], ...]) -> list[str]:
    """Values of some kinds that begin with a prefix, for shells."""
    return [value for kind in kinds for value in (values(kind) if isinstance(kind, str) else kind()) if value.startswith(prefix)]


def values(kind: str) -> list[str]:
    """Names of a kind: members of a family and files in this folder that could be one, or presets."""
    if kind in _FAMILIES:
        module, name = _FAMILIES[kind]
        family = getattr(import_module(module), name)
        return [*family.names(), *family.files(Path())]
    match kind:
        case "presets":
            return list(import_module("flashsim.device.presets").names())
        case "cpus":
            return [*import_module("flashsim.execution.cpu").names(), "none"]
        case "sets":
            return list(import_module("flashsim.studies.bench.aio").SETS)
        case "writable":
            return list(import_module("traces.format.base").writable())
        case "references":
            return [*import_module("traces.references.base").GENERATORS.names(), "join"]
        case _:  # graphs
            return list(import_module("algorithms.page_access.instances").FAMILIES)
