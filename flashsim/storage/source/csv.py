"""CSV files: the first line names the columns, types are inferred, and an empty field is NULL."""

from pathlib import Path

from pyarrow import csv

from flashsim.storage.source.base import TableRecords, reading

SUFFIXES = (".csv",)


def open_records(text: str) -> TableRecords:
    """The rows of a CSV file."""
    path = Path(text)
    options = csv.ConvertOptions(strings_can_be_null=True, null_values=[""], quoted_strings_can_be_null=False)
    with reading(path):
        return TableRecords(path.stem, csv.read_csv(path, convert_options=options))


def example(folder: Path) -> str:
    path = folder / "example.csv"
    path.write_text("k,text\n5,a\n,b\n70000,\n")
    return str(path)
