"""The command of an operation: its arguments and options, its help, its output files, and its output."""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from inspect import Parameter, Signature, cleandoc
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer
from typer.core import TyperCommand

from flashsim.core.errors import (
    FlashsimError,
    FlashsimWarning,
    InvalidParameterError,
    RefusedError,
    StandardOutputError,
    UnknownNameError,
    printable,
)
from flashsim.experiments.runs import interrupts
from flashsim.experiments.runs.outputs import Outputs
from flashsim.operations.fields import Field
from flashsim.operations.operation import fields, name_now, perform
from flashsim.operations.outcome import JSON, Listing, Outcome, OutputFile

if TYPE_CHECKING:
    import pandas as pd

#: Its home differs between versions of Typer.
_UsageError: Any = typer.BadParameter.__mro__[1]
_FORCE = Annotated[bool, typer.Option("--force", help="Replace output files that exist.")]
#: Width of a help text; a longer example goes on in a line of its own.
_WIDTH = 80
_EXAMPLE = re.compile(r"^( *)(flashsim .*(?:\\\n.*)*)$", re.MULTILINE)
_PLACE = re.compile(r"\{([a-z_]+)\}")
#: Names that help texts list and shells complete, by what a field calls them: a family's, or those of a list or a function.
_NAMES = {
    "joins": "algorithms.joins.base:JOINS", "strategies": "algorithms.fetching.base:FETCHING",
    "partition_methods": "algorithms.partitioning.base:PARTITIONING", "page_formats": "flashsim.storage.page.base:PAGE_FORMATS",
    "placements": "flashsim.storage.placement.base:PLACEMENTS", "formats": "traces.format.base:FORMATS",
    "writable": "traces.format.base:writable", "page_traces": "traces.page_format.base:PAGE_FORMATS",
    "references": "traces.references.base:GENERATORS.names", "engines": "traces.replay.base:ENGINES",
    "planners": "algorithms.page_access.planners.base:PLANNERS", "graphs": "algorithms.page_access.instances:FAMILIES",
    "policies": "algorithms.replacement.base:REPLACEMENT", "designs": "algorithms.extensions.base:DESIGNS",
    "restarts": "algorithms.restart.base:RESTARTS", "workloads": "traces.transactions.base:WORKLOADS",
    "benchmarks": "traces.workload.base:FAMILY", "sets": "flashsim.experiments.bench.aio:SETS",
    "presets": "flashsim.device.presets:names", "cpus": "flashsim.execution.cpu:names",
}  # fmt: skip
#: What an option takes besides the names of a list.
_BESIDES: dict[Any, list[str]] = {"cpus": ["none", "by-year"], "references": ["join"]}


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
    options = [Parameter(each, Parameter.KEYWORD_ONLY, default=default, annotation=kind) for each, (kind, default) in taken.items()]
    run.__signature__ = Signature(options)  # type: ignore[attr-defined]
    run.__annotations__ = {each: kind for each, (kind, _) in taken.items()}
    run.__doc__ = command_help(operation.__doc__ or "")
    app = typer.Typer(rich_markup_mode=None, add_completion=False)
    app.command(name, cls=CommandWithExamples)(run)
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
            options = [titles[each] for each in declared if not declared[each].argument and _holds(values.get(each), problem.name)]
            problem.args = (f"{options[0]}: {problem}",) if len(options) == 1 else problem.args
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


class CommandWithExamples(TyperCommand):
    """A command whose help text may hold examples, and places for the names of a kind."""

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

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """The help text, with the names that exist now in place of ``{joins}`` and the like."""
        for parameter in self.params:
            if text := getattr(parameter, "help", None):
                parameter.help = _PLACE.sub(lambda place: ", ".join(names(place[1])), text)  # type: ignore[attr-defined]
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


def names(kind: str | Callable[[], Iterable[str]]) -> list[str]:
    """Names of a kind: members of a family and files in this folder that could be one, or those of a list or function."""
    from flashsim.core.members import Family  # with what is installed, for which no help need wait

    source = resolve_name(_NAMES[kind]) if isinstance(kind, str) else kind
    if isinstance(source, Family):
        return [*source.names(), *source.files(Path())]
    return [*(source() if callable(source) else source), *_BESIDES.get(kind, ())]
