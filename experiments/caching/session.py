"""A simulation of policies as it is asked for, from a trace to what every policy did at every size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from experiments.caching.numbered import NumberedTrace
from experiments.caching.running import Run, Setting, compile_policies, policies, run, warm_up_references
from experiments.caching.sizes import MOST_FRAMES, parse_sizes, pool_sizes
from flashsim.core.errors import InvalidParameterError
from flashsim.core.protocols import Progress
from flashsim.core.references import References
from flashsim.core.units import format_size


class ReferenceSource(Protocol):
    """Where references come from."""

    @property
    def name(self) -> str:
        """The trace, in words."""

    def batches(self) -> Iterator[References]:
        """Its references, from the first on."""


@dataclass(frozen=True)
class Asked:
    """What policies are asked.

    Parameters
    ----------
    policies
        As `experiments.caching.running.policies` takes them.
    sizes
        As `experiments.caching.sizes.parse_sizes` takes them.
    page_size
        Bytes.
    warm_up
        As `experiments.caching.running.warm_up_references` takes it.
    limit
        Only so many references.
    """

    policies: Sequence[str]
    sizes: Sequence[str]
    page_size: int
    warm_up: str | int = 0
    limit: int | None = None
    seed: int = 0
    jobs: int = 1
    windows: int = 1

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready, without what changes nothing."""
        return {name: value for name, value in vars(self).items() if name not in ("jobs", "windows") and value is not None}


@dataclass(frozen=True)
class Simulated:
    """What policies did.

    Parameters
    ----------
    trace
        In words.
    references, writes, pages
        Of the whole trace: references, those that write, and distinct pages.
    """

    trace: str
    references: int
    writes: int
    pages: int
    page_size: int
    runs: Sequence[Run]

    def title(self) -> str:
        """The trace in a line."""
        kept = f" of {format_size(self.page_size)}"
        return f"{self.trace}: {self.references:,} references ({self.writes / self.references:.1%} writes) to {self.pages:,} pages{kept}"

    def rows(self) -> list[dict[str, Any]]:
        """A row a size and policy (`experiments.caching.running.Run.row`)."""
        return [each.row(self.page_size, self.pages) for each in self.runs]

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {name: value for name, value in vars(self).items() if name != "runs"} | {"runs": self.rows()}


def simulate(source: ReferenceSource, asked: Asked, progress: Progress | None = None) -> Simulated:
    """Let policies replace the pages of pools of several sizes as a trace refers to them.

    Raises
    ------
    InvalidParameterError
        A trace without pages, or a size, number of references or parameter out of its bounds.
    UnknownNameError, MissingFileError
        There is no such policy.
    FlashsimError
        A policy breaks its contract, or the trace cannot be read.
    """
    if asked.limit is not None and asked.limit < 1:
        raise InvalidParameterError("limit", asked.limit, "at least one reference is needed")
    if asked.jobs < 1:
        raise InvalidParameterError("jobs", asked.jobs, "it must be at least 1")
    if asked.seed < 0:
        raise InvalidParameterError("seed", asked.seed, "it must be at least 0")
    wanted = parse_sizes(asked.sizes)
    pool_sizes(wanted, MOST_FRAMES, asked.page_size)  # so that a size that is none is refused before a trace is read
    compile_policies(asked.policies)
    chosen = policies(asked.policies)
    with NumberedTrace(source.name, source.batches(), asked.limit, progress=progress) as trace:
        sizes = pool_sizes(wanted, trace.pages, asked.page_size)
        setting = Setting(warm_up_references(asked.warm_up, trace.references), asked.windows, asked.jobs, asked.seed)
        runs = run(trace, chosen, sizes, setting, progress)
    return Simulated(source.name, trace.references, trace.writes, trace.pages, asked.page_size, runs)
