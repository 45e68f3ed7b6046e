"""``flashsim export``: a relation's pages as files that another program reads."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from experiments.commands.shared import Force, JsonFile
from experiments.commands.values import completes
from experiments.presentation.progress import progress_bar
from experiments.presentation.tables import Table
from experiments.presentation.terminal import say
from experiments.runs.exporting import export_relation, lay_out_rows
from experiments.runs.outputs import Outputs, write_json
from flashsim.core.provenance import provenance
from flashsim.core.units import parse_size
from flashsim.storage.source import open_source


def export(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="The relation, as flashsim join takes it.")],
    out: Annotated[Path, typer.Option("--out", metavar="FOLDER", help="Where to put the files.")],
    page_format: Annotated[
        str, typer.Option(metavar="FORMAT", help="postgresql or sqlite; or a Python file.", autocompletion=completes("page_formats"))
    ] = "postgresql",
    page_size: Annotated[str, typer.Option("--page-size", metavar="SIZE", help="A server reads the size it was built with.")] = "8KiB",
    json: JsonFile = None,
    force: Force = False,
) -> None:
    r"""Write the pages that hold a relation as files that another program reads.

    In PostgreSQL's format that is a table's file (and FILE.1 and so on beyond 1 GiB), with FILE.sql, which creates the table. Where it
    takes the place of that table's file in a cluster that is shut down, the server shows its rows. In SQLite's format it is a database.

    Examples::

        flashsim export tpch:orders@0.01 --out exported
        flashsim export tpch:orders@0.01 --out database --page-format sqlite \
            --page-size 4KiB
    """
    size = parse_size(page_size, "--page-size")
    with Outputs(force) as outputs:
        folder = outputs.folder("--out", out)
        target = outputs.file("--json", json) if json else None
        file = lay_out_rows(open_source(source), size, page_format)
        with progress_bar("writing") as progress:
            exported = export_relation(file, folder, progress)
        say(f"{file.name}: {file.tuples:,} rows on {file.pages:,} pages of {file.layout.page_title}, in {out}\n")
        say(Table(["file", "bytes"], [[name, length] for name, length in exported.files.items()]))
        if target:
            asked = {"source": source, "page_format": page_format, "page_size": size}
            write_json(target, exported.as_dict() | {"provenance": provenance(asked)})
