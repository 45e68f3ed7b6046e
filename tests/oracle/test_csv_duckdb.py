"""Text files hold what DuckDB reads of them with explicit types, and join as DuckDB joins: drawn files, whose types an own rule says."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

import flashsim as fs
from flashsim.storage.heap_file import heap_file
from flashsim.storage.keys import NULL_KEY
from flashsim.storage.source import load_pair, open_source
from tests.tiers import seeds

WORDS = ("a", "äöü", 'say "x"', "1;2,3", "two\nlines", "tab\there", "2020-02-29", "true", "nan", "-", "日本", " 7", "None")


def drawn_digits(rng: random.Random, most: int) -> str:
    return str(rng.randrange(1, 10)) + "".join(rng.choices("0123456789", k=rng.randrange(most)))


#: Kinds of columns; a field each.
FIELDS: dict[str, Callable[[random.Random], str]] = {
    "few": lambda rng: str(rng.randrange(-5, 12)),
    "ids": lambda rng: str(9007199254740990 + rng.randrange(8)),
    "signed": lambda rng: str(rng.choice([1, -1]) * (2**63 - 2 + rng.randrange(2))),
    "unsigned": lambda rng: str(2**64 - 1 - rng.randrange(6)),
    "wide": lambda rng: str(2**64 - 3 + rng.randrange(6)),
    "digits": lambda rng: rng.choice(["", "-"]) + drawn_digits(rng, 38),
    "longer": lambda rng: drawn_digits(rng, 76),
    "longest": lambda rng: str(10**80 + rng.randrange(4)),
    "prices": lambda rng: f"{rng.randrange(-300, 300) / 100:.2f}",
    "halves": lambda rng: str(rng.randrange(-8, 8) / 2),
    "doubles": lambda rng: np.format_float_positional(rng.gauss(0, 1)),
    "points": lambda rng: rng.choice([".5", "5.", "-.25", "7"]),
    "words": lambda rng: rng.choice(WORDS),
}
#: A field that makes a column of numbers one of texts, or of other numbers.
ODD = (
    "1E3",
    "1e400",
    "0x10",
    "007",
    "+7",
    " 8",
    "1_000",
    "1,5",
    "NaN",
    "0.10000000000000001",
    "9007199254740993",
    "2.5",
    "-0",
    "--1",
    "1.2.3",
)


def drawn_column(rng: random.Random, rows: int) -> list[str]:
    """Fields of one kind, or of two that lie near each other; perhaps with an odd one and empty ones."""
    kinds = rng.choice([[each] for each in FIELDS] + [["few", "halves"], ["ids", "few"], ["ids", "halves"], ["unsigned", "few", "wide"]])
    fields = [FIELDS[rng.choice(kinds)](rng) for _ in range(rows)]
    if rows and rng.random() < 0.4:
        fields[rng.choice([0, -1])] = rng.choice(ODD)
    share = rng.choice([0, 0, 0.2, 1])
    return ["" if rng.random() < share else field for field in fields]


def type_of(fields: list[str]) -> str:
    """DuckDB's type of a column by the rule, written here anew."""
    values = [field for field in fields if field]
    whole = [bool(re.fullmatch(r"-?(0|[1-9]\d*)", field, re.ASCII)) for field in values]
    if values and all(whole):
        least, most = min(map(int, values)), max(map(int, values))
        for name, low, high in (("BIGINT", -(2**63), 2**63), ("UBIGINT", 0, 2**64), ("DECIMAL(38, 0)", 1 - 10**38, 10**38)):
            if low <= least and most < high:
                return name
        return "VARCHAR"  # DuckDB has no such integers
    plain = all(re.fullmatch(r"-?((0|[1-9]\d*)(\.\d*)?|\.\d+)", field, re.ASCII) for field in values)
    held = plain and all(Decimal(repr(float(field))) == Decimal(field) for field in values)
    fits = held and all(abs(int(field)) <= 2**53 for field, is_whole in zip(values, whole, strict=True) if is_whole)
    return "DOUBLE" if values and fits else "VARCHAR"


def is_wide(fields: list[str]) -> bool:
    return type_of(fields) == "VARCHAR" and all(re.fullmatch(r"-?(0|[1-9]\d*)", field, re.ASCII) for field in fields if field)


def write(path: Path, rng: random.Random, columns: dict[str, list[str]]) -> str:
    """Write a file in one of its dialects; return what parts its columns."""
    part, ending, quoted = rng.choice(",;\t|"), rng.choice(["\n", "\r\n"]), rng.choice([0, 0.5])

    def line(fields: tuple[str, ...] | list[str]) -> str:
        return part.join(
            '"{}"'.format(field.replace('"', '""')) if field and (re.search('[,;\t|"\n]', field) or rng.random() < quoted) else field
            for field in fields
        )

    lines = [line(list(columns)), *map(line, zip(*columns.values(), strict=True))]
    path.write_bytes((ending.join(lines) + ending * rng.randrange(2)).encode())
    return part


def drawn_table(rng: random.Random, key: list[str]) -> dict[str, list[str]]:
    more = {f"c{number}": drawn_column(rng, len(key)) for number in range(rng.randrange(1, 4))}
    return {"key": key, "row": [str(row) for row in range(len(key))], **more}


def relation(path: Path, part: str, columns: dict[str, list[str]]) -> str:
    types = ", ".join(f"'{name}': '{type_of(fields)}'" for name, fields in columns.items())
    reading = f"delim='{part}', quote='\"', escape='\"', header=true, auto_detect=false, max_line_size=1000000"
    return f"read_csv('{path}', columns={{{types}}}, {reading})"


def plain(rows: list[Any], columns: dict[str, list[str]]) -> list[tuple[Any, ...]]:
    """Rows whose decimals, and texts where DuckDB has no such integers, are integers."""
    whole = [is_wide(fields) or type_of(fields).startswith("DECIMAL") for fields in columns.values()]
    return [tuple(int(value) if is_whole and value else value for value, is_whole in zip(row, whole, strict=True)) for row in rows]


def expected_pairs(tables: list[str], keys: list[list[str]]) -> Counter[tuple[int, int]]:
    """Pairs of rows that DuckDB joins: numbers by value, exactly, and as spelled where a column is of texts."""
    types = [type_of(key) for key in keys]
    if "VARCHAR" in types:
        condition = "r.key::VARCHAR = s.key::VARCHAR"
        if types.count("DOUBLE"):  # as spelled, which a double no longer is
            tables = [table.replace("'key': 'DOUBLE'", "'key': 'VARCHAR'") for table in tables]
    elif len(set(types)) == 2 and "DOUBLE" in types:  # DuckDB would make doubles of integers
        real, whole = ("r.key", "s.key") if types[0] == "DOUBLE" else ("s.key", "r.key")
        condition = f"trunc({real}) = {real} AND {real}::DECIMAL(38, 0) = {whole}::DECIMAL(38, 0)"
    else:
        condition = "r.key = s.key" if types[0] == types[1] else "r.key::DECIMAL(38, 0) = s.key::DECIMAL(38, 0)"
    return Counter(duckdb.sql(f"SELECT r.row, s.row FROM {tables[0]} r JOIN {tables[1]} s ON {condition}").fetchall())


def pairs_by_code(codes: list[Any]) -> Counter[tuple[int, int]]:
    rows: dict[int, list[int]] = {}
    for row, code in enumerate(codes[1].tolist()):
        rows.setdefault(code, []).append(row)
    return Counter((left, right) for left, code in enumerate(codes[0].tolist()) if code != NULL_KEY for right in rows.get(code, ()))


@pytest.mark.parametrize("seed", seeds(0, 10, deep=140))
def test_drawn_files_are_read_and_joined_as_duckdb_does(seed: int, tmp_path: Path) -> None:
    rng = random.Random(f"csv {seed}")
    keys = [drawn_column(rng, rng.choice([0, 3, 30, 30, 300]))]
    keys += [rng.choice([drawn_column(rng, 40), rng.choices(keys[0] or ["1"], k=40), [each.lstrip("-") for each in keys[0]]])]
    tables, sources = [], []
    for name, key in zip("rs", keys, strict=True):
        path, columns = tmp_path / f"{name}.{rng.choice(['csv', 'tsv'])}", drawn_table(rng, key)
        tables.append(relation(path, write(path, rng, columns), columns))
        sources.append(open_source(str(path)))
        rows = [row.values() for row in sources[-1].take(np.arange(sources[-1].rows)).to_pylist()]
        assert plain(rows, columns) == plain(duckdb.sql(f"SELECT * FROM {tables[-1]}").fetchall(), columns)
        for column, values in columns.items():
            kind = type(next((value for value in sources[-1].key(column).to_pylist() if value is not None), None))
            wanted = {"BIGINT": int, "UBIGINT": int, "DOUBLE": float, "VARCHAR": str}.get(type_of(values), Decimal)
            assert kind in (wanted, type(None)) or (is_wide(values) and kind is Decimal), f"{column} of {values[:3]} is {kind}"
    pairs = load_pair(*sources, "key", "key")
    wanted_pairs = expected_pairs(tables, keys)
    assert pairs_by_code([each.codes for each in pairs]) == wanted_pairs
    for joined in pairs:
        if len(joined):  # keys that are read from pages are those in memory
            file = heap_file(joined, 65536)
            assert np.array_equal(file.layout.decode(file.layout.encode(file.run(0, file.pages))).keys, joined.codes)
    if seed % 5 == 0:
        paths = [str(next(tmp_path.glob(f"{name}.?sv"))) for name in "rs"]
        rows = fs.join(*paths, on="key", algorithm="grace-hash", device="ocz-core-60gb", memory="256KiB").rows()
        assert Counter(zip(rows["row"], rows["row_s"], strict=True)) == wanted_pairs
