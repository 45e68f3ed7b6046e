"""``flashsim pool worth`` and ``fs.worth``: how a budget is best divided among memory, SSD and disks, and which design is then best."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import pandas as pd
from matplotlib.figure import Figure

from flashsim.core.activity import activity
from flashsim.core.units import SECONDS, format_duration
from flashsim.operations import fields
from flashsim.operations.fields import Count, Duration, Field, Name, Names, Number, Size
from flashsim.operations.operation import operation
from flashsim.operations.outcome import Outcome
from flashsim.studies.designs import session
from flashsim.studies.designs import worth as budgets
from flashsim.studies.presentation.terminal import Explanation, Part
from models.pool_flows import DESIGNS

_RATES = "rates of Do (2012), table 3.1, or rates:read=N,write=N,further=N,servers=N"
_WORKLOADS = "Transactions at their full size, with parameters: {workloads}; or generated references, such as zipf:pages=1e6."
_DOLLARS = fields.number("an amount of dollars is needed")


class WorthOutcome(Outcome):
    """Divisions of budgets: `result` has the best one of each budget and design."""

    def __init__(self, choices: Sequence[budgets.Choice], study: budgets.WorthStudy) -> None:
        super().__init__(choices, f"{study.workload}: what a budget is best spent on, at prices of {study.prices}")
        self.study = study

    def summary(self) -> pd.DataFrame:
        """A row a budget and design: bytes of memory and SSD, disks, and transactions a second by formula and simulation."""
        return pd.DataFrame([each.row() for each in self.result])

    def as_dict(self) -> dict[str, Any]:
        """The result JSON-ready."""
        return {"choices": [each.row() for each in self.result], "break_even_s": self.break_even()}

    def printout(self) -> Iterator[Part]:
        """The divisions, and the five-minute rule."""
        rule = {name: format_duration(round(seconds * SECONDS)) for name, seconds in self.break_even().items()}
        yield from (budgets.choices_table(self.result), "")
        yield Explanation(
            f"By the five-minute rule a page is worth its place in memory if it is referenced again within {rule['memory']}, and on the "
            f"SSD within {rule['ssd']}. Formula and simulated: transactions a second; error: of the formula."
        )

    def break_even(self) -> dict[str, float]:
        """Seconds within which a page must be referenced again to be worth its place in memory, or on the SSD (five-minute rule)."""
        return self.study.break_even()

    def _draw(self) -> Figure:
        return budgets.choices_figure(self.result)


@operation
def worth(
    workload: Annotated[str, Name(_WORKLOADS, "WORKLOAD", completes=("workloads",), python="Formulas know no scans.", argument=True)],
    *,
    budget: Annotated[
        Any, Field("What memory, SSD and disks may cost. Several may be given.", "DOLLARS", fields.each(_DOLLARS), kind=float, several=True)
    ],
    prices: Annotated[str, Name(f"Of {', '.join(budgets.PRICES.names())}; or a file.", "NAME|FILE.toml")] = "retail-2026",
    design: Annotated[Any, Names(f"Of {', '.join(DESIGNS)}.", "DESIGN")] = DESIGNS,
    disk: Annotated[str, Name(f"The disks, a server each, bought one by one: {_RATES}.", "RATES")] = "rates",
    ssd_device: Annotated[str, Name("The SSD of any size, as the disks.", "RATES")] = "rates",
    clients: Annotated[int, Count("They run transactions, one after another each.")] = 64,
    think: Annotated[Any, Duration("Between two transactions of a client.")] = "0s",
    work: Annotated[Any, Duration("Of the processor, for each transaction.")] = "500us",
    verify: Annotated[int, Count("Of each budget so many of the best designs are simulated.", parse=fields.least(0))] = 1,
    scale: Annotated[
        float, Number("Of pages and sizes; 0: one by which the database has 32,768 pages.", "F", parse=fields.number("a share is needed"))
    ] = 0.0,
    page_size: Annotated[Any, Size("Of pages.")] = "8KiB",
    seed: fields.Seed = 0,
) -> WorthOutcome:
    """Divide a budget among memory, SSD and disks, with the best design, by formula; the best ones are simulated.

    Examples::

        flashsim pool worth tpc-c:warehouses=20 --budget 110 --budget 150 --prices graefe-2007 --scale 0.02
        flashsim pool worth zipf:pages=4000,write-share=0.3,each=10 --budget 81 --prices graefe-2007 --verify 2 --json worth.json

    Examples
    --------
    >>> import flashsim as fs
    >>> result = fs.worth("zipf:pages=20000,write-share=0.2,each=5", budget=500, design=["none", "lc"], clients=8, verify=0)
    >>> result.summary().design.tolist()[0] in ("none", "lc"), result.break_even()["memory"] < result.break_even()["ssd"]
    (True, True)
    """
    study = budgets.WorthStudy(
        workload=workload,
        budgets=tuple(budget),
        prices=prices,
        designs=tuple(session.design_names(design)),
        devices=(disk, ssd_device),
        clients=clients,
        think=think,
        work=work,
        scale=scale,
        verified=verify,
        page_size=page_size,
        seed=seed,
    )
    with activity("dividing the budget") as progress:
        return WorthOutcome(budgets.worth(study, progress), study)
