"""CSV files: the first line names the columns, types are inferred, and an empty field is NULL."""

from __future__ import annotations

from pathlib import Path

from pyarrow import csv

from flashsim.storage.source.base import TableRecords, reading

SUFFIXES = (".csv",)


def open_records(text: str) -> TableRecords:
    """The rows of a CSV file.

    Raises
    ------
    MissingFileError, DamagedFileError, SchemaError
        The file does not exist, a line has too many or too few fields, or two columns share a name.
    """
    path = Path(text)
    options = csv.ConvertOptions(strings_can_be_null=True, null_values=[""], quoted_strings_can_be_null=False)
    with reading(path):
        return TableRecords(path.stem, csv.read_csv(path, convert_options=options))


def example(folder: Path) -> str:
    """Numbers and texts, with NULL in both."""
    path = folder / "example.csv"
    path.write_text("k,text\n5,a\n,b\n70000,\n")
    return str(path)
