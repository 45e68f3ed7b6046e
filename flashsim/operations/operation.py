"""An operation: a function whose annotated parameters declare what Python and the command line give it, and both help texts."""

from __future__ import annotations

import errno
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import cache, wraps
from inspect import BoundArguments, Parameter, Signature, cleandoc, getattr_static, isfunction, signature
from os import PathLike, fsdecode, fspath
from typing import Any, ParamSpec, TypeVar, Unpack, get_args, get_origin, get_type_hints

from flashsim.core.errors import FlashsimError, InvalidParameterError, MissingFileError, RefusedError, UnknownNameError, shorten
from flashsim.core.provenance import provenance
from flashsim.experiments.presentation.progress import show_here
from flashsim.operations import FORMER_OPTIONS, RENAMED, WORDS_OF_PANDAS
from flashsim.operations.fields import Field, Parse
from flashsim.operations.member_names import names

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C")

#: Longer lists stand in provenance by their type alone.
_LONGEST = 32
_EXAMPLES = "\nExamples\n--------\n"

_origin: ContextVar[dict[str, Any]] = ContextVar("origin")


def operation(function: Callable[P, R]) -> Callable[P, R]:
    """A function that checks and parses its arguments by their fields, and whose outcome has them in its provenance.

    Its docstring describes it, with examples of the command (``Examples::``) and of Python (numpydoc's); the fields add the
    parameters. `flashsim.operations.command.command` makes a command of the same function.
    """
    plain_signature = signature(function).replace(parameters=[_plain(each) for each in parameters(function).values()])
    titles = {name: name for name in plain_signature.parameters}

    @wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        with in_words_of_python():
            bound = bind(plain_signature, args, kwargs, function.__name__)
            bound.apply_defaults()
            try:
                return perform(function, bound.arguments, titles)
            except UnknownNameError as problem:
                name_place(problem, bound.arguments)
                raise

    wrapper.__signature__ = plain_signature  # type: ignore[attr-defined]
    wrapper.__annotations__ = {name: each.annotation for name, each in plain_signature.parameters.items()}  # what documentation shows
    wrapper.__doc__ = _numpydoc(function)
    return wrapper


def bind(of_function: Signature, args: Sequence[Any], kwargs: Mapping[str, Any], title: str) -> BoundArguments:
    """Arguments by parameter; one that is misspelt is named, one that is missing, and by its title a function that is given too many."""
    accepted = of_function.parameters
    by_place = [name for name, each in accepted.items() if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    try:
        return of_function.bind(*args, **kwargs)
    except TypeError as problem:
        unknown = [name for name in kwargs if name not in accepted]
        if unknown and (now := name_now(unknown[0], accepted)):
            raise InvalidParameterError(unknown[0], "not an argument", f"it is {now} now") from None
        if unknown and "on" in accepted:
            refuse_words_of_pandas(unknown)
        if unknown and title in RENAMED:
            bound = f"fs.{title} takes {', '.join(accepted)}; {RENAMED[title]}"
            raise InvalidParameterError(unknown[0], "not an argument", bound) from None
        if unknown:
            raise UnknownNameError("argument", unknown[0], accepted) from None
        if len(args) > len(by_place):
            bound = f"it takes {', '.join(by_place) or 'none'}; give others by name: NAME=VALUE"
            raise InvalidParameterError(title, f"{len(args)} by position", bound) from None
        given = {*list(accepted)[: len(args)], *kwargs}
        for name, each in accepted.items():
            if each.default is each.empty and each.kind not in (each.VAR_KEYWORD, each.VAR_POSITIONAL) and name not in given:
                raise InvalidParameterError(name, "not given", "it is required") from None
        raise FlashsimError(f"{title}: {problem}") from None


def refuse_words_of_pandas(names: Iterable[str]) -> None:
    """Refuse arguments of pandas' joins; the message names what stands for each here."""
    for name in names:
        if name in WORDS_OF_PANDAS:
            raise InvalidParameterError(name, "not an argument", WORDS_OF_PANDAS[name]) from None


def name_place(problem: UnknownNameError, values: Mapping[str, Any]) -> None:
    """Begin the message with the argument, by its name in messages, whose value has the unknown name, if there is just one."""
    places = [place for place, value in values.items() if _has_name(value, problem.name)]
    if len(places) == 1 and not problem.message.startswith(f"{places[0]}:"):
        problem.args = (f"{places[0]}: {problem.message}", *problem.args[1:])


def _has_name(value: Any, name: str) -> bool:
    """Whether an argument, or one of several, is a name or has it as a part."""
    texts = [str(each) for each in (value if isinstance(value, list | tuple) else [value]) if isinstance(each, str | PathLike)]
    return any(name in (text, *re.split("[=:,]", text)) for text in texts)


def name_now(former: str, accepted: Iterable[str]) -> str | None:
    """What a former name of an option or argument is called now, where that is accepted."""
    return next((each for each in FORMER_OPTIONS.get(former, ()) if each in accepted), None)


def check_arguments(function: Callable[P, R]) -> Callable[P, R]:
    """A function, or a method, whose misspelt, missing and needless arguments are refused as those of operations are."""
    own, title = signature(function), function.__qualname__
    of_method = list(own.parameters.values())[1:] if "." in title and "<" not in title else None
    own = own if of_method is None else own.replace(parameters=of_method)

    @wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        with in_words_of_python():
            bind(own, args if of_method is None else args[1:], kwargs, title)
            return function(*args, **kwargs)

    return wrapper


def with_named_methods(kind: type[C]) -> type[C]:
    """A class whose public methods are `check_arguments`."""
    for name in dir(kind):
        if not name.startswith("_") and isfunction(method := getattr_static(kind, name)):
            setattr(kind, name, check_arguments(method))
    return kind


@cache
def parameters(function: Callable[..., Any]) -> dict[str, Parameter]:
    """The parameters of an operation with their fields, in order.

    Those of a group (``**rest: Unpack[Group]``, a `TypedDict`) stand before the first parameter whose field is to come after them, or last.
    """
    hints = get_type_hints(function, include_extras=True)
    own = {name: each.replace(annotation=hints[name]) for name, each in signature(function).parameters.items()}
    rest = next((name for name, each in own.items() if get_origin(each.annotation) is Unpack), None)
    if rest is None:
        return own
    (group,) = get_args(own.pop(rest).annotation)
    inner = {
        name: Parameter(name, Parameter.KEYWORD_ONLY, default=hint.__metadata__[-1].default, annotation=hint)
        for name, hint in get_type_hints(group, include_extras=True).items()
    }
    names = list(own)
    place = next((row for row, name in enumerate(names) if getattr(_field_of(own[name].annotation), "after_group", False)), len(names))
    return {name: (own | inner)[name] for name in (*names[:place], *inner, *names[place:])}


@cache
def fields(function: Callable[..., Any]) -> dict[str, Field]:
    """The fields of the parameters that are declared, with their defaults, in order."""
    found = {name: (_field_of(each.annotation), each.default) for name, each in parameters(function).items()}
    return {name: replace(field, default=default) for name, (field, default) in found.items() if field}


def _field_of(hint: Any) -> Field | None:
    return next((each for each in reversed(getattr(hint, "__metadata__", ())) if isinstance(each, Field)), None)


def _parse_arguments(function: Callable[..., Any], arguments: Mapping[str, Any], titles: Mapping[str, str]) -> dict[str, Any]:
    values = dict(arguments)
    for name, field in fields(function).items():
        if field.parse and not (values[name] is None and field.default is None):
            values[name] = _parse(field.parse, values[name], titles[name])
        needed = arguments[field.needs] if isinstance(field.needs, str) else True
        if (needed is None or needed is False) and arguments[name] != field.default:  # 0 is given
            raise RefusedError(f"{titles[name]}: it needs {titles[str(field.needs)]}")
        if callable(field.needs) and arguments[name]:
            field.needs(arguments, titles[name])
    return values


def _parse(parse: Parse, value: Any, name: str) -> Any:
    try:
        return parse(value, name)
    except FlashsimError:
        raise
    except Exception as problem:  # of a kind that nobody thought of
        raise InvalidParameterError(name, f"an object of type {type(value).__name__}", "values of this type are not accepted") from problem


def perform(function: Callable[..., R], given: Mapping[str, Any], titles: Mapping[str, str]) -> R:
    """Check and parse the arguments of an operation, whose names in messages are the titles, and call it with these as its provenance."""
    declared, arguments = fields(function), _parse_arguments(function, given, titles)
    free = [name for name, each in parameters(function).items() if each.kind is Parameter.VAR_KEYWORD]
    more = {inner: value for name in free for inner, value in arguments.pop(name, {}).items()}
    recorded = {name: value for name, value in (arguments | more).items() if name not in declared or declared[name].provenance}
    for name, value in recorded.items():
        is_one = name in declared and declared[name].single and isinstance(value, list) and len(value) == 1
        recorded[name] = describe(value[0] if is_one else value)
    token = _origin.set(provenance({name: value for name, value in recorded.items() if name != "seed"}, recorded.get("seed")))
    try:
        return function(**arguments, **more)
    finally:
        _origin.reset(token)


def origin() -> dict[str, Any]:
    """The provenance of the operation that is under way."""
    return _origin.get()


def describe(value: Any) -> Any:
    """An argument in provenance, JSON-ready: tables and the like by their name or type."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, PathLike):
        return fspath(value)
    if isinstance(value, Mapping):
        return {str(name): describe(each) for name, each in value.items()}
    if isinstance(value, Sequence) and len(value) <= _LONGEST:
        return [describe(each) for each in value]
    name = getattr(value, "name", None)
    return name if isinstance(name, str) else type(value).__name__


def _plain(parameter: Parameter) -> Parameter:
    """A parameter whose annotation has no field; of a value that is parsed, what is given."""
    field = _field_of(parameter.annotation)
    kind = get_args(parameter.annotation)[0] if field else parameter.annotation
    if kind is Any and field and field.parse and not field.several:
        kind = str if parameter.default is not None else str | None
    return parameter.replace(annotation=kind.__name__ if isinstance(kind, type) else str(kind).replace("typing.", ""))


def _numpydoc(function: Callable[..., Any]) -> str:
    """The docstring with the parameters, as numpydoc has them."""
    summary, _, examples = cleandoc(function.__doc__ or "").partition(_EXAMPLES)
    shell = summary.replace("\nExamples::\n", "\nFrom a shell::\n").rstrip()
    lines = [shell, "", "Parameters", "----------"]
    for name, field in fields(function).items():
        help = re.sub(r"\{(\w+)\}", lambda kind: ", ".join(names(kind[1], files=False)), f"{field.help} {field.python}".strip())
        lines += [name, *textwrap.wrap(help, 120, initial_indent="    ", subsequent_indent="    ")]
    return "\n".join([*lines, _EXAMPLES + examples])


@contextmanager
def in_words_of_python() -> Iterator[None]:
    """Refusals name arguments in the place of options."""
    try:
        yield
    except FlashsimError as problem:
        problem.reword()
        raise
    except OSError as problem:
        if problem.errno != errno.ENAMETOOLONG:
            raise
        raise MissingFileError(f"{shorten(fsdecode(problem.filename or ''))}: its name is too long for a file") from None


show_here()
