"""``flashsim trace``: what a trace says of its workload, in another format, or on another device."""

from __future__ import annotations

import typer

from flashsim.operations.commands.declared import command
from flashsim.operations.commands.shared import Group
from flashsim.operations.face.replay import replay
from flashsim.operations.face.trace import convert
from flashsim.operations.face.trace import trace as info

app = typer.Typer(cls=Group, rich_markup_mode=None, add_completion=False)


@app.callback()
def trace() -> None:
    """Recorded requests.

    Examples::

        flashsim trace info bnl.parquet
        flashsim trace convert bnl.parquet bnl.iolog --to fio-iolog
        flashsim trace replay bnl.parquet --on intel-x25e-64gb
    """


for operation, name in ((info, "info"), (convert, "convert"), (replay, "replay")):
    command(operation, name, app)
