"""``flashsim pool``: transactions on a memory pool that an SSD extends, by design."""

from __future__ import annotations

import typer

from algorithms.extensions.base import DESIGNS
from flashsim.operations.commands.declared import command
from flashsim.operations.commands.shared import Group
from flashsim.operations.face._operation import operation
from flashsim.operations.face._outcome import Listing
from flashsim.operations.face.pool import pool as run
from flashsim.operations.face.worth import worth
from flashsim.studies.presentation.tables import Table
from traces.transactions.base import WORKLOADS

app = typer.Typer(cls=Group, rich_markup_mode=None, add_completion=False)


@app.callback()
def pool() -> None:
    """A memory pool that an SSD extends: transactions by design, devices and sizes, in virtual time.

    Examples::

        flashsim pool run tpc-c:warehouses=2 --design none,lc --memory 20MB --ssd 140MB --time 4s
        flashsim pool worth tpc-c:warehouses=2 --budget 90 --prices graefe-2007 --scale 0.2
        flashsim pool list
    """


@operation
def listed() -> Listing:
    """List designs and workloads.

    Examples::

        flashsim pool list
    """
    told = {
        "designs": {name: DESIGNS.load(name).TITLE for name in DESIGNS.names()},
        "workloads": {name: WORKLOADS.load(name).TITLE for name in WORKLOADS.names()},
    }
    tables = [Table([kind.removesuffix("s"), "title"], [[name, title] for name, title in each.items()]) for kind, each in told.items()]
    return Listing([tables[0], "", tables[1]], [{"name": name, "title": each[name]} for each in told.values() for name in each], told)


for operation_, name in ((listed, "list"), (run, "run"), (worth, "worth")):
    command(operation_, name, app)
