"""``fs.algorithms``, ``flashsim cache list`` and ``flashsim pool list``: members of the families of algorithms."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, Any

import pandas as pd

from algorithms.extensions.base import DESIGNS
from algorithms.replacement.base import REPLACEMENT
from algorithms.restart.base import RESTARTS
from flashsim.core.errors import check_known
from flashsim.core.families import declarations
from flashsim.core.members import Family
from flashsim.experiments.presentation.tables import Table, same
from flashsim.experiments.presentation.terminal import Part, next_steps
from flashsim.operations.fields import Names, text
from flashsim.operations.operation import check_arguments, operation
from flashsim.operations.outcome import Listing
from traces.transactions.base import WORKLOADS


def _families() -> dict[str, Family[Any]]:
    """Families of algorithms by their folders."""
    places = [place for place in declarations() if place[0].rpartition(".")[0] == "algorithms"]
    return {package.rpartition(".")[2]: getattr(import_module(module), name) for package, module, name, _ in places}


@check_arguments
def algorithms(family: str = "joins") -> pd.DataFrame:
    """Members of a family of algorithms, a row each: name, what it is in a line, and the formula that it is held against (empty: none).

    One of one's own is given by the path of its Python file instead.

    Parameters
    ----------
    family
        ``"joins"`` of `fs.join`; ``"fetching"``, how late joins fetch pages; ``"partitioning"``, how hash joins make buckets;
        ``"replacement"``, the policies of `fs.cache`; ``"extensions"``, the designs of `fs.pool`, and ``"restart"``, those of
        `fs.pool_crash`; ``"programs"`` of `fs.smart`.

    Raises
    ------
    UnknownNameError
        There is no such family.

    Examples
    --------
    >>> import flashsim as fs
    >>> "hybrid-hash" in fs.algorithms()["algorithm"].tolist()
    True
    >>> fs.algorithms("restart")["algorithm"].tolist()
    ['lbr', 'lrr', 'lvr', 'mmr', 'none']
    """
    families = _families()
    check_known("family", text(family, "family"), families)
    members = {name: families[family].load(name) for name in families[family].names()}
    rows = [(name, (each.__doc__ or "").strip().partition("\n")[0], getattr(each, "FORMULA", "")) for name, each in members.items()]
    return pd.DataFrame(rows, columns=["algorithm", "title", "formula"])


@operation
def cache_list(
    policies: Annotated[
        Any, Names("Only these policies; also Python files.", "[POLICY]...", completes=("policies",), argument=True)
    ] = None,
) -> Listing:
    """List replacement policies and their parameters.

    Examples::

        flashsim cache list
        flashsim cache list lru-k 2q
    """
    members = {name: REPLACEMENT.load(name) for name in policies or REPLACEMENT.names()}
    titles = [{"policy": name, "title": each.TITLE} for name, each in members.items()]
    bounds = [
        [f"{name}:{parameter}", one.default, f"{one.least:,} to {one.most:,}", one.meaning]
        for name, each in members.items()
        for parameter, one in each.PARAMETERS.items()
    ]
    parts: list[Part] = ["Policies that decide which page leaves a full cache\n", Table.of(titles, same("policy", "title"))]
    parts += ["", Table(["parameter", "default", "bounds", "meaning"], bounds)] if bounds else []
    parts += ["", next_steps("flashsim cache simulate TRACE --policy POLICY counts misses", "--policy ./FILE.py takes a policy of yours")]
    parameters = {name: {parameter: one._asdict() for parameter, one in each.PARAMETERS.items()} for name, each in members.items()}
    return Listing(parts, titles, {name: {"title": each.TITLE, "parameters": parameters[name]} for name, each in members.items()})


@operation
def pool_list() -> Listing:
    """List designs, restart designs and workloads.

    Examples::

        flashsim pool list
    """
    families: dict[str, Family[Any]] = {"designs": DESIGNS, "restart designs": RESTARTS, "workloads": WORKLOADS}
    titles = {kind: {name: family.load(name).TITLE for name in family.names()} for kind, family in families.items()}
    parts: list[Part] = ["Designs of a memory pool that an SSD extends, restarts after a crash, and workloads\n"]
    for kind, each in titles.items():
        parts += [Table([kind.removesuffix("s"), "title"], each.items()), ""]
    parts.append(
        next_steps("flashsim pool run WORKLOAD --design DESIGN,DESIGN compares designs", "flashsim pool restart compares restarts")
    )
    return Listing(parts, [{"name": name, "title": each[name]} for each in titles.values() for name in each], titles)
