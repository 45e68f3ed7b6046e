"""``flashsim cache``: replacement policies on traces of page references, simulated, compared, and as curves."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from algorithms.replacement.base import REPLACEMENT
from flashsim.operations.commands.declared import command
from flashsim.operations.commands.shared import Group
from flashsim.operations.face._fields import Names
from flashsim.operations.face._operation import operation
from flashsim.operations.face._outcome import Listing
from flashsim.operations.face.cache import cache as simulate
from flashsim.operations.face.cache import comparison, curve, keep
from flashsim.studies.caching import report

app = typer.Typer(cls=Group, rich_markup_mode=None, add_completion=False)


@app.callback()
def cache() -> None:
    """Replacement policies: hits and misses by policy and size, differences with confidence, and miss-ratio curves.

    Examples::

        flashsim cache simulate zipf:pages=1000,references=1e5 --policy lru --policy arc --size 1%..80%
        flashsim cache compare pages.txt lru arc sieve --size 10%
        flashsim cache curve pages.txt
        flashsim cache list
    """


@operation
def listed(
    policies: Annotated[Any, Names("Only these; also Python files.", "[POLICY]...", completes=("policies",), argument=True)] = None,
) -> Listing:
    """List the replacement policies, with what their parameters mean.

    Examples::

        flashsim cache list
        flashsim cache list lru-k 2q
    """
    told = [(name, REPLACEMENT.load(name)) for name in policies or REPLACEMENT.names()]
    shown = {name: {parameter: one._asdict() for parameter, one in each.PARAMETERS.items()} for name, each in told}
    parts = [part for table in report.policies_tables(told) for part in (table, "")]
    rows = [{"policy": name, "title": each.TITLE} for name, each in told]
    return Listing(parts[:-1], rows, {name: {"title": each.TITLE, "parameters": shown[name]} for name, each in told})


for operation_, name in ((listed, "list"), (simulate, "simulate"), (comparison, "compare"), (curve, "curve"), (keep, "keep")):
    command(operation_, name, app)
