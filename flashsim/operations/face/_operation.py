"""An operation: a function whose annotated parameters declare what Python and the command line give it, and both help texts."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from inspect import Parameter, signature
from os import PathLike, fspath
from typing import Any, ParamSpec, TypeVar, get_args, get_type_hints

from flashsim.core.activity import activity
from flashsim.core.errors import FlashsimError
from flashsim.core.protocols import Progress
from flashsim.core.provenance import provenance
from flashsim.operations.face import _working  # noqa: F401  (shows progress)
from flashsim.operations.face._fields import Field

P = ParamSpec("P")
R = TypeVar("R")

#: A list that is longer is described, and not told.
_TOLD = 32
_EXAMPLES = "\nExamples\n--------\n"

_origin: ContextVar[dict[str, Any]] = ContextVar("origin")
_switches: ContextVar[dict[str, Any]] = ContextVar("switches")


def operation(function: Callable[P, R]) -> Callable[P, R]:
    """A function whose arguments are checked and parsed as its fields say, and whose outcome knows them.

    Its docstring says what it does, with examples of the command (``Examples::``) and of Python (numpydoc's); the fields add the
    parameters. `flashsim.operations.commands.declared.command` makes a command of the same function.
    """
    declared = signature(function)

    @wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        bound = declared.bind(*args, **kwargs)
        bound.apply_defaults()
        with in_words_of_python(function):
            return perform(function, parsed(function, bound.arguments, lambda name, field: name))

    plain = [each.replace(annotation=_plain(function, each)) for each in declared.parameters.values()]
    called.__signature__ = declared.replace(parameters=plain)  # type: ignore[attr-defined]
    called.__doc__ = _documented(function)
    return called


def fields(function: Callable[..., Any]) -> dict[str, Field]:
    """The parameters that are declared, in order."""
    hints = get_type_hints(function, include_extras=True)
    found = {name: [each for each in getattr(hints[name], "__metadata__", ()) if isinstance(each, Field)] for name in hints}
    return {name: each[-1] for name, each in found.items() if each}


def parsed(function: Callable[..., Any], given: Mapping[str, Any], called: Callable[[str, Field], str]) -> dict[str, Any]:
    """Arguments as the operation works with them; `called` says what messages call each."""
    arguments = dict(given)
    for name, field in fields(function).items():
        default = signature(function).parameters[name].default
        if field.parse and not (arguments[name] is None and default is None):
            arguments[name] = field.parse(arguments[name], called(name, field))
    return arguments


def perform(function: Callable[..., R], arguments: dict[str, Any]) -> R:
    """Call an operation with parsed arguments, as whose provenance these stand while it works and in its outcome."""
    declared = fields(function)
    told = {name: described(value) for name, value in arguments.items() if name not in declared or declared[name].told}
    mapped = [name for name, each in signature(function).parameters.items() if each.kind is Parameter.VAR_KEYWORD]
    more = arguments.pop(mapped[0], {}) if mapped else {}
    told |= {name: described(value) for name, value in more.items()}
    if isinstance(told.get("device"), list) and len(told["device"]) == 1:
        (told["device"],) = told["device"]
    token = _origin.set(provenance({name: value for name, value in told.items() if name not in ("seed", *mapped)}, told.get("seed")))
    handed_on = {declared[name].switch: value for name, value in arguments.items() if name in declared and declared[name].switch}
    other = _switches.set({name: value for name, value in handed_on.items() if value is not None})
    try:
        return function(**arguments, **more)
    finally:
        _origin.reset(token)
        _switches.reset(other)


def origin() -> dict[str, Any]:
    """The provenance of the operation that is under way."""
    return _origin.get()


def switches() -> dict[str, Any]:
    """The arguments of the operation that is under way which it hands on, by the parameters that they are there, without what is None."""
    return _switches.get()


def described(value: Any) -> Any:
    """An argument in provenance, JSON-ready; of tables and the like what they are."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, PathLike):
        return fspath(value)
    if isinstance(value, Mapping):
        return {str(name): described(each) for name, each in value.items()}
    if isinstance(value, Sequence) and len(value) <= _TOLD:
        return [described(each) for each in value]
    name = getattr(value, "name", None)
    return name if isinstance(name, str) else type(value).__name__


def _plain(function: Callable[..., Any], parameter: Parameter) -> Any:
    """An annotation without its field; of a parsed value what is given."""
    hint = get_type_hints(function, include_extras=True)[parameter.name]
    field = fields(function).get(parameter.name)
    kind = get_args(hint)[0] if field else hint
    if kind is Any and field and field.parse and not field.several:
        kind = str if parameter.default is not None else str | None
    return kind.__name__ if isinstance(kind, type) else str(kind).replace("typing.", "")


def _documented(function: Callable[..., Any]) -> str:
    """The docstring with the parameters, as numpydoc has them."""
    summary, _, rest = _dedented(function.__doc__ or "").partition(_EXAMPLES)
    lines = ["Parameters", "----------"]
    for name, field in fields(function).items():
        told = re.sub(r"\{(\w+)\}", lambda kind: f"the {kind[1].replace('_', ' ')}", " ".join(filter(None, (field.help, field.python))))
        lines += [name, *textwrap.wrap(told, 120, initial_indent="    ", subsequent_indent="    ")]
    shell = summary.replace("\nExamples::\n", "\nFrom a shell::\n").rstrip()
    return "\n".join([shell, "", *lines, _EXAMPLES + rest])


def _dedented(docstring: str) -> str:
    first, _, rest = docstring.partition("\n")
    return f"{first}\n{textwrap.dedent(rest)}"


@contextmanager
def in_words_of_python(function: Callable[..., Any] | None = None) -> Iterator[None]:
    """Refusals name arguments in the place of options, those of an operation by what it calls them."""
    try:
        yield
    except FlashsimError as problem:
        declared = fields(function) if function else {}
        known = {option.removeprefix("--"): name for name, field in declared.items() for option in field.options(name)}
        problem.args = (in_python(str(problem), known), *problem.args[1:])
        raise


@contextmanager
def working(what: str) -> Iterator[Progress]:
    """Work outside an operation: its progress, and refusals in Python's words."""
    with in_words_of_python(), activity(what) as progress:
        yield progress


#: Options of commands that are told to be given, and have a value here.
_ARGUMENTS = {"wrap": "wrap=True", "allow-write": "allow_write=True", "force": "force=True"}


def in_python(message: str, known: Mapping[str, str] = {}) -> str:
    """A message that names options of commands, with arguments in their place; `known` says what some are called.

    Examples
    --------
    >>> in_python("device: writing would destroy 1 MiB in a.bin; allow it with --allow-write")
    'device: writing would destroy 1 MiB in a.bin; allow it with allow_write=True'
    """

    def argument(option: re.Match[str]) -> str:
        return (_ARGUMENTS | {name: known[name] for name in known if name not in _ARGUMENTS}).get(option[1], option[1].replace("-", "_"))

    return re.sub(r"--([a-z][a-z-]*)", argument, message)
