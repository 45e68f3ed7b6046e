"""``flashsim smart run`` and ``fs.smart``: a SQL query on drives that run programs, what runs where, and how long it takes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import pyarrow.csv
import pyarrow.parquet as pq

from flashsim.apps.smart import session
from flashsim.apps.smart.placing import AUTO
from flashsim.apps.smart.reasons import why_query
from flashsim.apps.smart.timing import SmartMachine
from flashsim.core.activity import activity
from flashsim.device import presets
from flashsim.device.smart.inside import MOST_CORES
from flashsim.execution import cpu as cpus
from flashsim.experiments.presentation.tables import Table, same, with_headings
from flashsim.experiments.presentation.terminal import Explanation, Part, next_steps
from flashsim.operations import fields
from flashsim.operations.face._arguments import Types, by_name, sources
from flashsim.operations.face._why_outcome import WhyOutcome, parts_of
from flashsim.operations.fields import Count, Field, Name
from flashsim.operations.operation import operation
from flashsim.operations.outcome import Outcome, OutputFile, frame
from flashsim.storage.texts import check_parquet, frame_of, spell_out

if TYPE_CHECKING:
    import pandas as pd

_SHOWN = 20
_TABLE = "A table, as NAME=SOURCE; may be repeated."
_WHERE = "Placement of operators: auto (fastest), or drive (as many as possible inside)."


class SmartOutcome(Outcome):
    """Rows of a query, and where its operators ran."""

    def __init__(self, result: session.QueryAnswer, why: bool = False, exact: bool = False) -> None:
        super().__init__(result)
        self._why = why_query(result, exact=exact) if why else None

    def why(self, *, exact: bool = False) -> WhyOutcome:
        """Say why the query took its time; it is timed again with each mechanism made ideal. `exact`: with Shapley values."""
        return WhyOutcome(why_query(self.result, exact=exact) if exact or self._why is None else self._why, self.provenance)

    def as_dict(self) -> dict[str, Any]:
        """The answer JSON-ready, without its rows."""
        document: dict[str, Any] = self.result.as_dict()
        return document | ({"why": self._why.as_dict()} if self._why else {})

    def rows(self) -> pd.DataFrame:
        """The rows of the result; integers stay integers beside NULLs."""
        return frame_of(self.result.frame())

    def explain(self) -> pd.DataFrame:
        """A row an operator: where it runs, and what it does."""
        return frame(self.result.explain())

    def summary(self) -> pd.DataFrame:
        """A row a placement: seconds by formula, and simulated of those that were run."""
        return frame(self.result.rows())

    def printout(self) -> Iterator[Part]:
        columns = same("where", "inside", "estimate_s", "simulated_s", "rows_to_host")
        placements = with_headings(Table.of(self.result.rows(), columns, digits=4), {"estimate_s": "by formula (s)"})
        yield from (self.title, "", self.explain(), "", placements, "")
        if (reason := self.result.choice.reason()) is not None:
            yield Explanation(reason)
        if (share := self.result.estimates.break_even) is not None:
            yield Explanation(f"By formula both places take as long where {share:.1%} of the rows qualify.")
        if self._why:
            yield from ("", *parts_of(self._why))
        table = self.result.frame()
        shown = [map(_text, column.to_pylist()) for column in spell_out(table.slice(0, _SHOWN)).columns]
        yield from ("", Table(table.column_names, zip(*shown, strict=True)))
        if table.num_rows > _SHOWN:
            yield Explanation(f"The first {_SHOWN} of {table.num_rows:,} rows; --out writes all.")
        steps = [] if self._why else ["--why explains the time"]
        yield from (
            "",
            next_steps(*steps, "--where host or --where drive chooses the place", "docs/explanation/smart_ssd.md explains the formula"),
        )


def _text(value: Any) -> str:
    """A value of a row as a terminal shows it.

    Examples
    --------
    >>> [_text(value) for value in (1234567, 1e-9, True, None, "", "text")]
    ['1,234,567', '1e-09', 'true', 'NULL', "''", 'text']
    """
    if value is None or isinstance(value, bool):
        return "NULL" if value is None else str(value).lower()
    return f"{value:,.10g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value) or "''"


def _write_rows(outcome: SmartOutcome, target: Path, path: Path) -> None:
    table = outcome.result.frame()
    if path.suffix == ".csv":
        pyarrow.csv.write_csv(spell_out(table), target)
    else:
        pq.write_table(check_parquet(table), target, write_page_checksum=True)


SmartOutcome.FILES = (
    OutputFile("--out", "ROWS.parquet|.csv", "Write the rows.", _write_rows, (".parquet", ".csv")),
    OutputFile(
        "--timeline",
        "FILE.json[.gz]",
        "Write a timeline of the first drive, which Perfetto opens.",
        lambda outcome, target, path: outcome.result.write_timeline(target, path.suffix == ".gz"),
        (".json", ".gz"),
    ),
)


def _columns(value: Any, parameter: str) -> dict[str, str]:
    named = by_name(value, parameter, "NAME=COLUMN, such as t=o_custkey")
    return {name: fields.text(column, parameter) for name, column in named.items()}


@operation
def smart(
    query: Annotated[str, Field("One SELECT, in quotes.", "QUERY", fields.text, argument=True)],
    *,
    table: Annotated[Any, Field(_TABLE, "NAME=SOURCE", by_name, several=True, python="Or tables by name.", reads=True)],
    device: Annotated[str, Name("Preset of a Smart SSD, or a TOML file.", "PRESET", completes=("presets",))],
    where: Annotated[str, Field(_WHERE, "|".join(session.PLACES), fields.choice(*session.PLACES))] = AUTO,
    drives: Annotated[
        int, Count("Number of drives over which the scanned table is striped.", parse=partial(fields.count, most=session.MOST_DRIVES))
    ] = 1,
    partition: Annotated[
        Any,
        Field(
            "Distribute rows over drives by the hash of a column; may be repeated.",
            "NAME=COLUMN",
            _columns,
            several=True,
            python="Or by table.",
        ),
    ] = None,
    types: Types = None,
    cores: Annotated[
        int | None,
        Count("Cores per drive for programs; by default as in the preset.", metavar="C", parse=partial(fields.count, most=MOST_CORES)),
    ] = None,
    cpu: fields.Cpu = cpus.BY_YEAR,
    page_size: fields.PageSize = "8KiB",
    page_format: Annotated[
        str, Name("Page format: one of {page_formats}; or a Python file.", "FORMAT", completes=("page_formats",))
    ] = "pax",
    then: Annotated[
        str | None, Name("Program that runs after the query's own, as NAME:parameter=value,... or FILE.py:...", "PROGRAM")
    ] = None,
    why: fields.Why = False,
    exact: fields.Exact = False,
) -> SmartOutcome:
    r"""Run a SQL query inside a Smart SSD.

    Reports which operators ran in the drive, which on the host, and the time of each.

    Rows come from real pages. The language is a part of DuckDB's: SELECT of columns, expressions and aggregates FROM a table with [SEMI]
    JOIN ... ON equality, WHERE (also IN (SELECT ...)), GROUP BY, HAVING, ORDER BY, LIMIT. Of several tables the largest is scanned inside.

    Examples::

        flashsim smart run "SELECT count(*) FROM o WHERE o_custkey < 99" \
            --table o=tpch:orders@0.01 --device samsung-smart-400gb
        flashsim smart run \
            "SELECT o_orderpriority, avg(o_totalprice) FROM o GROUP BY 1" \
            --table o=tpch:orders@0.01 --device samsung-smart-400gb \
            --where drive --drives 4 --out rows.parquet
        flashsim smart run \
            "SELECT o_orderkey FROM o JOIN c ON o_custkey = c_custkey" \
            --table o=tpch:orders@0.01 --table c=tpch:customer@0.01 \
            --device samsung-smart-400gb --where drive --timeline query.json
        flashsim smart run \
            "SELECT count(*) FROM o JOIN c ON o_custkey = c_custkey" \
            --table o=tpch:orders@0.01 --table c=tpch:customer@0.01 \
            --partition o=o_custkey --partition c=c_custkey --drives 2 \
            --device samsung-smart-400gb --where drive

    Examples
    --------
    >>> import flashsim as fs
    >>> numbers = {"a": list(range(1000)), "b": [value % 7 for value in range(1000)]}
    >>> result = fs.smart("SELECT b, sum(a) AS s FROM t WHERE a < 100 GROUP BY b ORDER BY b LIMIT 2", table={"t": numbers},
    ...                   device="samsung-smart-400gb", where="drive")
    >>> result.rows().values.tolist()
    [[0, 735], [1, 750]]
    >>> result.explain()[["operator", "where"]].values.tolist()[:4]
    [['scan', 'drive'], ['selection', 'drive'], ['projection', 'drive'], ['aggregation', 'drive']]
    """
    drive = presets.load(device)
    chosen = cpus.choose(cpu, drive)
    cpus.warn_of_years(chosen, drive)
    machine = SmartMachine(drive, None if chosen is None else cpus.load(chosen), drives)
    if cores is not None:
        machine = replace(machine, preset=replace(machine.preset, inside=replace(machine.inside, cores=cores)))
    with activity("query") as progress:
        rows = sources(table, types)
        result = session.answer(query, rows, machine, where, page_size, page_format, then, partition, progress)
        return SmartOutcome(result, why, exact)
