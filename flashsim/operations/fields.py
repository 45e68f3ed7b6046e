"""Parameters of operations, each declared once: its sources, its check, and its help texts."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from math import inf
from numbers import Real
from operator import index
from os import PathLike, fspath
from pathlib import Path
from sys import float_info
from typing import Annotated, Any

from flashsim.core.errors import InvalidParameterError, RefusedError, shorten
from flashsim.core.units import KIB, MIB, NEVER, format_size, parse_duration, parse_size

#: The largest count of requests, pages or clients.
MOST = 2**31 - 1
#: Parses a value; the second argument is the parameter's name in messages.
Parse = Callable[[Any, str], Any]


def size(value: Any, parameter: str, least: int = 1, most: int = NEVER) -> int:
    """Bytes of a size with a unit, between two bounds.

    Examples
    --------
    >>> size("64MiB", "memory")
    67108864
    """
    if not isinstance(value, str):
        raise InvalidParameterError(parameter, repr(value), "a size with a unit is needed, such as '64MiB' or '100MB'")
    if (number := parse_size(value, parameter)) < least:
        raise InvalidParameterError(parameter, format_size(number), f"it must be at least {format_size(least)}")
    if number > most:
        raise InvalidParameterError(parameter, format_size(number), f"it must be from {format_size(least)} up to {format_size(most)}")
    return number


def duration(value: Any, parameter: str) -> int:
    """Nanoseconds of a time with a unit.

    Examples
    --------
    >>> duration("75us", "think")
    75000
    """
    if not isinstance(value, str):
        raise InvalidParameterError(parameter, repr(value), "a time with a unit is needed, such as '75us' or '1.5s'")
    return parse_duration(value, parameter)


def count(value: Any, parameter: str, least: int = 1, most: float = MOST) -> int:
    """A whole number between two bounds."""
    number: Any = None if isinstance(value, bool) else value
    try:
        whole = index(number)
    except TypeError:
        raise InvalidParameterError(parameter, repr(value), f"a whole number of at least {least} is needed") from None
    if whole < least:
        raise InvalidParameterError(parameter, value, f"it must be at least {least}")
    if whole > most:
        raise InvalidParameterError(parameter, value, f"it must be at most {most:,}")
    return whole


def least(number: int) -> Parse:
    """A parser of a whole number with a lower bound."""
    return partial(count, least=number)


#: A parser of a whole number of any size.
seed: Parse = partial(count, least=0, most=inf)


def flag(value: Any, parameter: str) -> bool:
    """True or False, and nothing that Python only takes for one of them, such as ``'no'``."""
    if not isinstance(value, bool):
        word = repr(value) if isinstance(value, str | int | float) else type(value).__name__
        raise InvalidParameterError(parameter, shorten(word), "it must be True or False")
    return value


def number(bound: str = "it must be a number", most: float | None = None) -> Parse:
    """A number, whole or not, with `most` one above 0 and at most that; the bound is what a refusal says."""

    def parse(value: Any, parameter: str) -> float:
        if isinstance(value, bool) or not isinstance(value, Real):
            raise InvalidParameterError(parameter, repr(value), bound)
        if most is not None and not 0 < float(value) <= most:
            raise InvalidParameterError(parameter, value, bound)
        return float(value)

    return parse


def positive(bound: str, most: float = float_info.max) -> Parse:
    """A number above 0; the bound is what a refusal says."""
    return number(bound, most)


def text(value: Any, parameter: str) -> str:
    """A name, or a path as text."""
    if isinstance(value, PathLike):
        value = fspath(value)
    if not isinstance(value, str) or not value:
        raise InvalidParameterError(parameter, repr(value), "a name or a path is needed, as text")
    return value


def choice(*words: str) -> Parse:
    """A parser of one of a few words."""

    def parse(value: Any, parameter: str) -> str:
        if value not in words:
            raise InvalidParameterError(parameter, repr(value), f"it must be one of {', '.join(words)}")
        return str(value)

    return parse


def several(value: Any, parameter: str) -> list[Any]:
    """A list of a single value, or of the values of a list, a tuple or another collection.

    Examples
    --------
    >>> several("bnl", "algorithm"), several(("bnl", "grace-hash"), "algorithm")
    (['bnl'], ['bnl', 'grace-hash'])
    """
    many = isinstance(value, Iterable) and not isinstance(value, str | bytes | PathLike | Mapping)
    values = list(value) if many else [value]
    if not values:
        raise InvalidParameterError(parameter, repr(value), "at least one is needed")
    return values


def each(parse: Parse) -> Parse:
    """A parser of one value or several, each by `parse`."""
    return lambda value, parameter: [parse(one, parameter) for one in several(value, parameter)]


def commas(parse: Parse) -> Parse:
    """A parser of one value or several, or of a text that holds them with commas between."""
    return lambda value, parameter: each(parse)(value.split(",") if isinstance(value, str) else value, parameter)


def _cpu(value: Any, parameter: str) -> str | None:
    """A CPU preset; None, or ``none``: work takes no time."""
    return None if value is None or value == "none" else text(value, parameter)


def refuse(options: Mapping[str, Any], why: str) -> None:
    """Refuse the options that are given, for a reason."""
    for name, value in options.items():
        if value:
            raise RefusedError(f"{name}: " + why)


@dataclass(frozen=True)
class Field:
    """A parameter, as ``Annotated`` carries it."""

    help: str  #: Text of both help texts; ``{joins}`` and the like stand for the names that exist.
    metavar: str | None = None  #: Placeholder of the value in help texts.
    parse: Parse | None = None  #: Checks a value, or the default, and converts it for the operation; a default None stays None.
    #: What shells complete: kinds of names (`flashsim.operations.member_names.names`), or functions that give names.
    completes: tuple[str | Callable[[], Iterable[str]], ...] = ()
    option: str = ""  #: Name of the option, where it is not the parameter's.
    kind: type = str  #: Type that the command line converts to.
    python: str = ""  #: Further values in Python, in words.
    argument: bool = False  #: A positional argument of the command.
    several: bool = False  #: A repeatable option.
    #: Names a file that no other option may write; or a function from all values to such files.
    reads: bool | Callable[[Mapping[str, Any]], Iterable[Path]] = False
    writes: bool = False  #: Names a file that is written.
    provenance: bool = True  #: Belongs to the provenance, since it changes the result.
    #: A function from all values of the command to this one, which then has no option.
    constant: Callable[[Mapping[str, Any]], Any] | None = None
    required: bool = False  #: Has no default in the command.
    single: bool = False  #: Provenance has a list of one value as that value.
    default: Any = None  #: Default, which is declared here in groups alone (`flashsim.operations.operation.parameters`).
    seldom: bool = False  #: A long help text leaves it to ``--help-all``.
    after_group: bool = False  #: Comes after the parameters of the operation's group.
    #: The parameter without which it has no effect; or a function from all values and its name in messages, which refuses it then.
    needs: str | Callable[[Mapping[str, Any], str], None] | None = None

    def option_of(self, name: str) -> str:
        """The option of a parameter."""
        return self.option or f"--{name.replace('_', '-')}"

    def name_in_messages(self, name: str) -> str:
        """The parameter's name in messages of the command."""
        return (self.metavar or name.upper()) if self.argument else self.option_of(name)


Name = partial(Field, parse=text)
Names = partial(Field, parse=each(text), several=True)
Size = partial(Field, metavar="SIZE", parse=size)
Duration = partial(Field, metavar="TIME", parse=duration)
Count = partial(Field, metavar="N", parse=least(1), kind=int)
Number = partial(Field, parse=number(), kind=float)
Scale = partial(Field, metavar="F", parse=positive("a number above 0 and at most 1 is needed", 1), kind=float)
Flag = partial(Field, parse=flag, kind=bool)
Target = partial(Field, parse=lambda value, parameter: Path(text(value, parameter)), writes=True, provenance=False)

# What several operations take. The values of sizes and times are `Any` to type checkers: texts for those who call, numbers inside.
PageSize = Annotated[Any, Size("Page size, 512B to 64KiB.", parse=partial(size, least=512, most=64 * KIB))]
PartOfDevice = Annotated[Any, Size("Part of the device that is used, such as 4GiB.", parse=partial(size, least=512))]
PoolPages = Annotated[Any, Size("Page size, 512B to 64MiB.", parse=partial(size, least=512, most=64 * MIB))]
Seed = Annotated[int, Count("Random seed.", parse=seed, default=0)]
Jobs = Annotated[int | None, Count("Number of parallel runs; by default the number of cores.", provenance=False)]
Why = Annotated[bool, Flag("Explain the time: by parts, by mechanisms of the devices, and against the formula.")]
Exact = Annotated[
    bool,
    Flag(
        "With --why: also Shapley values of the four largest mechanisms (up to 16 more runs).", needs="why", provenance=False, seldom=True
    ),
]
Fresh = Annotated[bool, Flag("Ignore cached results of earlier runs.", provenance=False)]
Force = Annotated[bool, Flag("Replace output files that exist.", python="Also a real file that is written to.", provenance=False)]
_CPUS = "CPU preset for CPU times: {cpus}; or a TOML file. by-year takes the preset nearest to the device's year."
Cpu = Annotated[str | None, Field(_CPUS, "PRESET", _cpu, ("cpus",), python="None: it takes no time.", seldom=True)]
_ROWS_ON_PAGES = "Page format: one of {page_formats}; or a Python file. By default sqlite, or the format that the join needs."
PageFormat = Annotated[str | None, Name(_ROWS_ON_PAGES, "FORMAT", completes=("page_formats",), seldom=True)]
_STATES = "Initial state of a simulated drive: empty, sequential[:SHARE], random[:SHARE] or steady; ,erases=MEAN[:SPREAD] adds wear."
Precondition = Annotated[str | None, Name(_STATES, "STATE")]
