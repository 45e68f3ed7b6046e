"""The parameters of operations, each declared once: what it is read from, what it must be, and what help texts say of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from flashsim.core.errors import InvalidParameterError
from flashsim.operations.face._units import count, duration, number, several, size, text

#: Gives what an operation works with, of what was given and the name that messages call it by.
Parse = Callable[[Any, str], Any]


@dataclass(frozen=True)
class Field:
    """A parameter, as ``Annotated`` carries it.

    Parameters
    ----------
    help
        What both help texts say; ``{joins}`` and the like stand for the names that there are.
    metavar
        What stands for its value in help texts.
    parse
        Checks a value that is given, or the default, and turns it into what the operation works with; None is left as it is where it is
        the default.
    completes
        Kinds of names that shells complete (`flashsim.operations.commands.values.values`).
    option
        Names of the option, or of the argument in messages, where they are not the parameter's.
    typed
        What the command line reads it as.
    python
        What may be given in Python besides, in words.
    argument
        Whether the command takes it by its place.
    several
        Whether the option may be repeated.
    reads, writes
        Whether it names a file that must not be written besides (or which files, of all that is given), or one that is made.
    told
        Whether it changes what comes out, and so belongs to the provenance.
    switch
        The parameter that it is of what the operation hands many on to (`flashsim.operations.face._operation.switches`).
    fixed
        What the command gives without an option, of all that it was given.
    needed
        Whether the command has no default.
    """

    help: str
    metavar: str | None = None
    parse: Parse | None = None
    completes: tuple[str, ...] = ()
    option: str = ""
    typed: type = str
    python: str = ""
    argument: bool = False
    several: bool = False
    reads: bool | Callable[[Mapping[str, Any]], Iterable[Path]] = False
    writes: bool = False
    told: bool = True
    switch: str = ""
    fixed: Callable[[Mapping[str, Any]], Any] | None = None
    needed: bool = False

    def options(self, name: str) -> list[str]:
        """The names of the option of a parameter."""
        return self.option.split() or [f"--{name.replace('_', '-')}"]

    def called(self, name: str) -> str:
        """What messages of the command call it."""
        return (self.metavar or name.upper()) if self.argument else self.options(name)[0]


def choice(*known: str) -> Parse:
    """One of a few words."""

    def parse(value: Any, parameter: str) -> str:
        if value not in known:
            raise InvalidParameterError(parameter, repr(value), f"it must be one of {', '.join(known)}")
        return str(value)

    return parse


def each(parse: Parse) -> Parse:
    """One or several, each of a kind."""
    return lambda value, parameter: [parse(one, parameter) for one in several(value, parameter)]


def commas(parse: Parse) -> Parse:
    """One or several, which a text holds with commas between them."""
    return lambda value, parameter: each(parse)(value.split(",") if isinstance(value, str) else value, parameter)


def least(number: int) -> Parse:
    """A whole number, at least so large."""
    return partial(count, least=number)


def a_number(bound: str = "it must be a number") -> Parse:
    """A number, whole or not; the bound is what a refusal says."""
    return partial(number, bound=bound)


def cpu_name(value: Any, parameter: str) -> str | None:
    """A CPU preset; None, or ``none``: work takes no time."""
    return None if value is None or value == "none" else text(value, parameter)


def a_duration(value: Any, parameter: str) -> Any:
    """A time with a unit, as it was given."""
    duration(value, parameter)
    return value


Name = partial(Field, parse=text)
Names = partial(Field, parse=each(text), several=True)
Size = partial(Field, metavar="SIZE", parse=size)
Duration = partial(Field, metavar="TIME", parse=duration)
Count = partial(Field, metavar="N", parse=least(1), typed=int)
Number = partial(Field, parse=a_number(), typed=float)
Flag = partial(Field, typed=bool)
Target = partial(Field, parse=lambda value, parameter: Path(text(value, parameter)), writes=True, told=False)

# What several operations take. The values of sizes and times are `Any` to type checkers: texts for those who call, numbers inside.
PageSize = Annotated[Any, Size("512B to 64KiB.")]
PagesOf = Annotated[Any, Size("Requests are cut into pages of this size; bytes are told by it.")]
Seed = Annotated[int, Count("Of all that is drawn.", parse=least(0))]
Jobs = Annotated[int | None, Count("Runs at the same time; by default as many as there are cores.", told=False)]
Fresh = Annotated[bool, Flag("Leave what is kept of earlier runs unused.", told=False)]
Cluster = Annotated[
    str | None,
    Name(
        "A Dask scheduler whose workers make the runs, such as tcp://host:8786; they must see this machine's files.", "ADDRESS", told=False
    ),
]
AllowWrite = Annotated[bool, Flag("Write to DEVICE, if it is a real file or disk: what it holds is lost.", told=False)]
YesDestroy = Annotated[str | None, Name("The block device that --allow-write destroys, by name.", "/dev/NAME", told=False)]
Force = Annotated[bool, Flag("Replace output files that exist.", python="Also a real file that is written to.", told=False)]
Cpu = Annotated[
    str | None,
    Field("The CPU that prices work, of {cpus}; or a TOML file.", "PRESET", cpu_name, ("cpus",), python="None: it takes no time."),
]
Placement = Annotated[str, Name("One of {placements}; or a Python file.", "PLACEMENT", completes=("placements",))]
PageFormat = Annotated[
    str | None,
    Name(
        "How pages hold rows: one of {page_formats}; or a Python file. By default sqlite, or what the join needs.",
        "FORMAT",
        completes=("page_formats",),
    ),
]
Precondition = Annotated[
    str | None,
    Name("Of a simulated drive: empty, sequential[:SHARE], random[:SHARE] or steady, and ,erases=MEAN[:SPREAD] for worn blocks.", "STATE"),
]

# Which part of a trace (`traces.file.excerpt.excerpt`).
TraceFormat = Annotated[
    str | None,
    Name(
        "The trace's format, if its content does not tell: {formats}.",
        "NAME|FILE.py",
        completes=("formats",),
        option="--format --from",
    ),
]
TraceColumns = Annotated[
    str | None,
    Name("Columns of a CSV file, such as time=Stamp:ms,offset=LBA:sectors,length=Size:bytes.", "ROLE=NAME:UNIT,..."),
]
TraceDevices = Annotated[Any, Count("Only requests of this device of the trace; may be repeated.", parse=each(least(0)), several=True)]
Start = Annotated[str | None, Duration("Only from so long after the first request, such as 10s.", parse=a_duration)]
Window = Annotated[str | None, Duration("Only so long, from --start or the first request on.", parse=a_duration)]
Speed = Annotated[
    float,
    Number(
        "Let requests arrive, and programs think, X times as fast.",
        metavar="X",
        parse=a_number("a number is needed, such as 2 for twice as fast"),
    ),
]

# What is done with a device's requests.
Timeline = Annotated[Any, Target("Write a timeline that Perfetto opens (trace-event format).", "FILE.json[.gz]")]
TimelineFrom = Annotated[Any, Duration("Begin the timeline at this time, such as 1.5s.")]
TimelineTo = Annotated[Any, Duration("End the timeline at this time.")]

# What joins take: those that fetch rows, and those that make buckets.
FirstJoin = Annotated[str | None, Name("What digest joins the digests with; sort-merge by default.", "JOIN", completes=("joins",))]
FetchStrategy = Annotated[
    str | None,
    Name("How digest fetches rows, one of {strategies}, planned by default; or a Python file.", "STRATEGY", completes=("strategies",)),
]
CacheShare = Annotated[
    float | None, Number("Of graph-based: room for k (d + 1) pages, d the largest degree of the join graph; 1 by default.")
]
FetchPolicy = Annotated[
    str | None,
    Name(
        "Of pooled: which page is replaced, such as lirs or lru-k:k=3, of {policies}; or a Python file. lru by default.",
        "POLICY",
        completes=("policies",),
    ),
]
KernelJoin = Annotated[str | None, Name("What flash-join joins keys with; hybrid-hash by default.", "JOIN", completes=("joins",))]
ResultColumns = Annotated[
    Any,
    Field(
        "Columns of the result, such as R.c_name,S.o_totalprice, for rare and flash-join, which read no others.",
        "LIST",
        lambda value, parameter: tuple(commas(text)(value, parameter)),
        python="Or a list of them.",
    ),
]
PartitionMethod = Annotated[
    str | None,
    Name(
        "How grace-hash and hybrid-hash make buckets, one of {partition_methods}, traditional by default; or a Python file.",
        "METHOD",
        completes=("partition_methods",),
    ),
]
SubBuffer = Annotated[Any, Size("Of n-hash: how output buffers are divided; 8KiB where they are larger.")]
Strands = Annotated[int | None, Count("Of para-hash: how many work together; 1 by default.", metavar="K")]
