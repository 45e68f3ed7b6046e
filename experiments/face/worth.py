"""``fs.worth``: how a budget is best divided among memory, SSD and disks, and which design is then best."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from experiments.face._outcome import Outcome
from experiments.face._units import count, duration, number, several, size, text
from experiments.face._working import working
from experiments.pooling.sizes import design_names
from experiments.pooling.worth import Choice, Worth, choices_figure
from experiments.pooling.worth import worth as divided
from flashsim.core.provenance import provenance
from models.pool_flows import DESIGNS


class WorthOutcome(Outcome):
    """Divisions of budgets.

    Parameters
    ----------
    asked
        What was asked.
    found
        The best division of each budget, a design each.
    """

    def __init__(self, provenance: dict[str, Any], asked: Worth, found: Sequence[Choice]) -> None:
        super().__init__(f"{asked.workload}: what a budget is best spent on, at prices of {asked.prices}", provenance)
        self.asked, self.found = asked, found

    def summary(self) -> pd.DataFrame:
        """A row a budget and design: bytes of memory and SSD, disks, and transactions a second by formula and simulation."""
        return pd.DataFrame([each.row() for each in self.found])

    def break_even(self) -> dict[str, float]:
        """Seconds within which a page must be referenced again to be worth its place in memory, or on the SSD (five-minute rule)."""
        return self.asked.break_even()

    def _draw(self) -> Figure:
        return choices_figure(self.found)


def worth(
    workload: str,
    *,
    budget: Any,
    prices: str = "retail-2026",
    design: Any = DESIGNS,
    disk: str = "rates",
    ssd_device: str = "rates",
    clients: int = 64,
    think: str = "0s",
    work: str = "500us",
    verify: int = 1,
    scale: float = 0.0,
    page_size: str = "8KiB",
    seed: int = 0,
) -> WorthOutcome:
    """Divide a budget among memory, SSD and disks, with the best design, by formula; the best ones are simulated.

    Parameters
    ----------
    workload
        At its full size, such as ``"tpc-c:warehouses=2000"``; formulas know no scans.
    budget
        One or several amounts of dollars.
    prices
        ``"graefe-2007"``, ``"do-2009"``, ``"retail-2026"``, or the path of a TOML file such as these.
    design
        One or several of none, cw, dw, lc and tac; all by default.
    disk, ssd_device
        Rates: of the disks, which are bought one by one (a server each), and of the SSD, whatever its size.
    clients, think, work
        How many run transactions, the time between two of a client, and that of the processor for each.
    verify
        So many of the best designs for each budget are simulated.
    scale
        Of pages and sizes; by default the database is made small.

    Raises
    ------
    InvalidParameterError
        A budget that pays for too little, a workload with scans or that cannot be scaled, or devices that are no rates.
    UnknownNameError, MissingFileError, DamagedFileError
        There is no such design, workload or price list.

    Examples
    --------
    >>> import flashsim as fs
    >>> told = fs.worth("zipf:pages=20000,write-share=0.2,each=5", budget=500, design=["none", "lc"], clients=8, verify=0)
    >>> told.summary().design.tolist()[0] in ("none", "lc"), told.break_even()["memory"] < told.break_even()["ssd"]
    (True, True)
    """
    asked = Worth(
        workload=text(workload, "workload"),
        budgets=tuple(number(each, "budget", "an amount of dollars is needed") for each in several(budget, "budget")),
        prices=text(prices, "prices"),
        designs=tuple(design_names([text(each, "design") for each in several(design, "design")])),
        devices=(text(disk, "disk"), text(ssd_device, "ssd_device")),
        clients=count(clients, "clients"),
        think=duration(think, "think"),
        work=duration(work, "work"),
        scale=number(scale, "scale", "a share is needed"),
        verified=count(verify, "verify", 0),
        page_size=size(page_size, "page_size"),
        seed=count(seed, "seed", 0),
    )
    with working("dividing the budget") as progress:
        found = divided(asked, progress)
    return WorthOutcome(provenance(asked.as_dict()), asked, found)
