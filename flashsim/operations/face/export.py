"""``flashsim export`` and ``fs.export``: a relation's pages as files that another program reads."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import pandas as pd

from flashsim.core.activity import activity
from flashsim.experiments.presentation.tables import Table as Shown
from flashsim.experiments.runs.exporting import export_relation, lay_out_rows
from flashsim.experiments.runs.outputs import Outputs
from flashsim.operations import fields
from flashsim.operations.face._arguments import Table, Types, sources
from flashsim.operations.fields import Field, Name, Size
from flashsim.operations.operation import operation, origin


@operation
def export(
    table: Annotated[
        Table,
        Field(
            "The relation, in any form that flashsim join accepts.",
            "SOURCE",
            argument=True,
            reads=True,
            python="Or a DataFrame, or an Arrow table.",
        ),
    ],
    folder: Annotated[str | Any, Name("Target folder.", "FOLDER", option="--out")],
    *,
    page_format: Annotated[
        str, Name("Page format: postgresql, sqlite, or a Python file.", "FORMAT", completes=("page_formats",))
    ] = "postgresql",
    types: Types = None,
    page_size: Annotated[Any, Size("Page size; a PostgreSQL server reads only the size it was built with.")] = "8KiB",
    force: fields.Force = False,
) -> pd.DataFrame:
    r"""Write a table as PostgreSQL or SQLite files.

    In PostgreSQL's format that is a table's file (and FILE.1 and so on beyond 1 GiB), with FILE.sql, which creates the table. Where it
    takes the place of that table's file in a cluster that is shut down, the server shows its rows. In SQLite's format it is a database.

    Examples::

        flashsim export tpch:orders@0.01 --out exported
        flashsim export tpch:orders@0.01 --out database --page-format sqlite \
            --page-size 4KiB

    Examples
    --------
    >>> import flashsim as fs, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     fs.export({"k": [1, 2]}, folder).values.tolist()
    [['table', 8192], ['table.sql', 39]]
    """
    with Outputs(force) as outputs:
        place = outputs.folder("folder", Path(folder))
        file = lay_out_rows(sources({"table": table}, types)["table"], page_size, page_format)
        with activity("writing") as progress:
            files = export_relation(file, place, progress)
    table_of_files = Shown(["file", "bytes"], files["files"].items())
    lead = f"{file.name}: {file.tuples:,} rows on {file.pages:,} pages of {file.layout.page_title}, in {folder}"
    table_of_files.attrs |= {"lead": lead, "document": files | {"provenance": origin()}}
    return table_of_files
