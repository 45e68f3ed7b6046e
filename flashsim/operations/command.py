"""A command made of an operation: its arguments and options, its help, its output files, and what it prints."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from inspect import Parameter, Signature, cleandoc
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer
from typer.core import TyperCommand

from flashsim.core.errors import FlashsimWarning, InvalidParameterError
from flashsim.core.preset_files import printable
from flashsim.operations.fields import Field
from flashsim.operations.operation import fields, parameters, parsed, perform
from flashsim.operations.outcome import JSON, File, Listing, Outcome
from flashsim.studies.runs.outputs import Outputs

if TYPE_CHECKING:
    import pandas as pd

_FORCE = Annotated[bool, typer.Option("--force", help="Replace output files that exist.")]
#: A help text is this wide; an example that is longer goes on in a line of its own.
_WIDTH = 80
_EXAMPLE = re.compile(r"^( *)(flashsim .*(?:\\\n.*)*)$", re.MULTILINE)
_PLACE = re.compile(r"\{([a-z_]+)\}")
#: The families that members are asked of, by what help texts call them: package and name of each.
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
    "workloads": ("traces.transactions.base", "WORKLOADS"),
    "benchmarks": ("traces.workload.base", "FAMILY"),
}


def command(function: Callable[..., Outcome | pd.DataFrame], name: str) -> typer.Typer:
    """The command of an operation."""
    operation: Callable[..., Outcome | pd.DataFrame] = function.__wrapped__  # type: ignore[attr-defined]
    declared, defaults = fields(operation), {each.name: each.default for each in parameters(operation).values()}
    outputs_of = getattr(get_type_hints(operation)["return"], "FILES", ())
    files = {f"{each.option.removeprefix('--').replace('-', '_')}_": each for each in (*outputs_of, JSON)}

    def run(**given: Any) -> None:
        from flashsim.studies.presentation.terminal import say  # with pandas, for which no help need wait

        arguments = {each: defaults[each] for each in declared}
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

    made = {each: _parameter(each, field, defaults[each]) for each, field in declared.items() if not field.fixed}
    for each, file in files.items():
        option = typer.Option(file.option, metavar=file.metavar, help=file.help)
        made[each] = Parameter(each, Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[Path | None, option])
    made.setdefault("force", Parameter("force", Parameter.KEYWORD_ONLY, default=False, annotation=_FORCE))
    run.__signature__ = Signature(list(made.values()))  # type: ignore[attr-defined]
    run.__annotations__ = {each: parameter.annotation for each, parameter in made.items()}
    run.__doc__ = command_help(operation.__doc__ or "")
    app = typer.Typer(rich_markup_mode=None, add_completion=False)
    app.command(name, cls=CommandWithExamples)(run)
    return app


def _read(given: Any) -> list[Path]:
    """The files that an argument names, each perhaps behind a name and ``=``."""
    named = [each.rpartition("=")[2] for each in ([given] if isinstance(given, str) else given or ())]
    from flashsim.storage.source import source_file  # with Numba, for which no help need wait

    return [source_file(each) or Path(each) for each in named]


def _target(outputs: Outputs, file: File, path: Path) -> Path:
    if file.endings and path.suffix not in file.endings:
        raise InvalidParameterError(file.option, repr(str(path)), f"its name must end in {', '.join(file.endings)}")
    return outputs.folder(file.option, path) if file.folder else outputs.file(file.option, path)


def _parameter(name: str, field: Field, default: Any) -> Parameter:
    completion = (lambda incomplete: completed(incomplete, field.completes)) if field.completes else None
    more: dict[str, Any] = {"metavar": field.metavar, "help": field.help, "autocompletion": completion}
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


class CommandWithExamples(TyperCommand):
    """A command whose help text may hold examples, and places for what there is."""

    def __init__(self, name: str | None, *, help: str | None = None, **rest: Any) -> None:
        super().__init__(name, help=with_examples(help), **rest)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """The help text, with what exists now in place of ``{joins}`` and the like."""
        for parameter in self.params:
            if text := getattr(parameter, "help", None):
                parameter.help = _PLACE.sub(lambda place: ", ".join(values(place[1])), text)  # type: ignore[attr-defined]
        super().format_help(ctx, formatter)


def command_help(docstring: str) -> str:
    """The part of an operation's docstring that the command shows: without numpydoc's examples of Python."""
    return cleandoc(docstring).partition("\nExamples\n--------\n")[0].rstrip()


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


def completed(typed: str, kinds: tuple[str, ...]) -> list[str]:
    """All values of some kinds that begin as what was typed, for shells."""
    return [value for kind in kinds for value in values(kind) if value.startswith(typed)]


def values(kind: str) -> list[str]:
    """What there is of a kind: members of a family and files in this folder that could be one, presets, or papers."""
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
        case "graphs":
            return list(import_module("algorithms.page_access.instances").FAMILIES)
        case "papers":
            return list(import_module("flashsim.literature.base").PAPERS.names())
        case _:  # all claims of all papers, as PAPER/CLAIM
            papers = import_module("flashsim.literature.base")
            return [claim.name for name in papers.PAPERS.names() for claim in papers.load(name).claims]
