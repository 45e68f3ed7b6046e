"""``fs.export``: a table's pages as files that another program reads."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

import pandas as pd

from experiments.face._operation import working
from experiments.face._tables import Table, source
from experiments.face._units import size, text
from experiments.runs.exporting import export_relation, lay_out_rows
from experiments.runs.outputs import Outputs


def export(
    table: Table,
    folder: str | PathLike[str],
    *,
    page_format: str = "postgresql",
    page_size: str = "8KiB",
    force: bool = False,
) -> pd.DataFrame:
    """Write the pages that hold a table as files that another program reads.

    Parameters
    ----------
    table
        A DataFrame, an Arrow table, a path, or a source such as ``tpch:orders@0.1``.
    folder
        Where the files come; it is made, or empty.
    page_format
        ``postgresql``: a table's file, in segments of 1 GiB, beside a ``.sql`` that creates the table. In place of that table's file in a
        cluster that is shut down, a server shows its rows. ``sqlite``: a database.
    page_size
        Of a page; a server reads the size that it was built with, which is nearly always ``"8KiB"``.
    force
        Replace files that exist.

    Returns
    -------
    DataFrame
        A row a file: its name and bytes.

    Raises
    ------
    SchemaError, CapacityError
        The format does not hold such a column, or row.
    RefusedError
        No other program reads such pages, or the folder holds files.

    Examples
    --------
    >>> import flashsim as fs, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     fs.export({"k": [1, 2]}, folder).values.tolist()
    [['table', 8192], ['table.sql', 39]]
    """
    told = source(table, "table")
    with working("writing") as progress, Outputs(force) as outputs:
        place = outputs.folder("folder", Path(text(folder, "folder")))
        file = lay_out_rows(told, size(page_size, "page_size"), text(page_format, "page_format"))
        files = export_relation(file, place, progress).files
    return pd.DataFrame({"file": list(files), "bytes": list(files.values())})
