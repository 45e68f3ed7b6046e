"""What a drive is on the market: its year and its cells; and where the figures of its preset come from."""

from collections.abc import Iterable
from dataclasses import dataclass

from flashsim.core.errors import check_known
from flashsim.core.parameters import count, text

#: Bits of a flash cell, and how a disk records: along the tracks, perpendicular to the platter, or on shingled tracks.
CELLS = ("SLC", "MLC", "TLC", "QLC", "LMR", "PMR", "SMR")
#: The first words of sources, and what a preset is that has one, the first that applies.
_ORIGINS = {"identified": "identified", "measured": "measured", "fitted": "fitted", "solved": "fitted"}


@dataclass(frozen=True)
class Product:
    """Facts of a drive from which no time follows; make it with `flashsim.core.parameters.build`."""

    year: int = count("year in which the drive came to market; 0: not known", 0, 9999, default=0)
    cells: str = text("SLC, MLC, TLC or QLC flash, or how a disk records: LMR, PMR or SMR (shingled)", "")

    def __post_init__(self) -> None:
        if self.cells:
            check_known("cells", self.cells, CELLS)


def origin_of(sources: Iterable[str], cited: Iterable[str]) -> str:
    """Where a preset's figures come from, by the first words of the sources of its parameters and of its cited figures.

    ``identified``, ``measured`` or ``fitted`` if a parameter is; ``estimated`` if all cited figures are estimates, or without such all
    parameters; else ``sourced``: it is built to figures of a data sheet, a manual or a paper.

    >>> origin_of(["estimate: as of chips of 2020", "fitted: reads beside writes"], ["data sheet"])
    'fitted'
    >>> origin_of(["estimate: as of chips of 2020"], ["data sheet: 7 GB/s"]), origin_of(["estimate"], [])
    ('sourced', 'estimated')
    """
    every, cited = [*sources], [*cited]
    first = {source.split(maxsplit=1)[0].rstrip(":") for source in every if source.strip()}
    by_word = [origin for word, origin in _ORIGINS.items() if word in first]
    return by_word[0] if by_word else "estimated" if all(source.startswith("estimate") for source in cited or every) else "sourced"
