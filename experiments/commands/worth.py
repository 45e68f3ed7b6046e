"""``flashsim pool worth``: how a budget is best divided among memory, SSD and disks."""

from __future__ import annotations

from typing import Annotated

import typer

from experiments.commands.shared import Force, JsonFile
from experiments.commands.values import completes
from experiments.pooling.sizes import design_names
from experiments.pooling.worth import PRICES, Worth, choices_table, worth
from experiments.presentation.progress import progress_bar
from experiments.presentation.terminal import explain, say
from experiments.runs.outputs import Outputs, write_json
from flashsim.core.provenance import provenance
from flashsim.core.units import SECONDS, format_duration, parse_duration, parse_size
from models.pool_flows import DESIGNS

_RATES = "rates of Do (2012), table 3.1, or rates:read=N,write=N,further=N,servers=N"


def worth_of_budget(
    workload: Annotated[
        str,
        typer.Argument(
            metavar="WORKLOAD",
            help="Transactions at their full size, with parameters: {workloads}; or generated references, such as zipf:pages=1e6.",
            autocompletion=completes("workloads"),
        ),
    ],
    budget: Annotated[list[float], typer.Option(metavar="DOLLARS", help="What memory, SSD and disks may cost. Several may be given.")],
    prices: Annotated[str, typer.Option(metavar="NAME|FILE.toml", help=f"Of {', '.join(PRICES.names())}; or a file.")] = "retail-2026",
    design: Annotated[list[str], typer.Option(metavar="DESIGN", help=f"Of {', '.join(DESIGNS)}.")] = list(DESIGNS),  # noqa: B006
    disk: Annotated[str, typer.Option(metavar="RATES", help=f"The disks, a server each, bought one by one: {_RATES}.")] = "rates",
    ssd_device: Annotated[str, typer.Option(metavar="RATES", help="The SSD of any size, as the disks.")] = "rates",
    clients: Annotated[int, typer.Option(metavar="N", help="They run transactions, one after another each.")] = 64,
    think: Annotated[str, typer.Option(metavar="TIME", help="Between two transactions of a client.")] = "0s",
    work: Annotated[str, typer.Option(metavar="TIME", help="Of the processor, for each transaction.")] = "500us",
    verify: Annotated[int, typer.Option(metavar="N", help="Of each budget so many of the best designs are simulated.")] = 1,
    scale: Annotated[float, typer.Option(metavar="F", help="Of pages and sizes; 0: one by which the database has 32,768 pages.")] = 0.0,
    page_size: Annotated[str, typer.Option("--page-size", metavar="SIZE", help="Of pages.")] = "8KiB",
    seed: Annotated[int, typer.Option(metavar="N", help="Of all that is drawn.")] = 0,
    json: JsonFile = None,
    force: Force = False,
) -> None:
    """Divide a budget among memory, SSD and disks, with the best design, by formula; the best ones are simulated.

    Examples::

        flashsim pool worth tpc-c:warehouses=20 --budget 110 --budget 150 --prices graefe-2007 --scale 0.02
        flashsim pool worth zipf:pages=4000,write-share=0.3,each=10 --budget 81 --prices graefe-2007 --verify 2 --json worth.json
    """
    asked = Worth(
        workload=workload,
        budgets=tuple(budget),
        prices=prices,
        designs=tuple(design_names(design)),
        devices=(disk, ssd_device),
        clients=clients,
        think=parse_duration(think, "--think"),
        work=parse_duration(work, "--work"),
        scale=scale,
        verified=verify,
        page_size=parse_size(page_size, "--page-size"),
        seed=seed,
    )
    with Outputs(force) as outputs:
        target = outputs.file("--json", json) if json else None
        origin = provenance(asked.as_dict())
        with progress_bar("dividing the budget") as progress:
            found = worth(asked, progress)
        say(choices_table(found), "")
        rule = {name: format_duration(round(seconds * SECONDS)) for name, seconds in asked.break_even().items()}
        explain(
            f"By the five-minute rule a page is worth its place in memory if it is referenced again within {rule['memory']}, and on the "
            f"SSD within {rule['ssd']}. Formula and simulated: transactions a second; error: of the formula."
        )
        if target:
            rows = [each.row() for each in found]
            write_json(target, {"choices": rows, "break_even_s": asked.break_even(), "provenance": origin})
