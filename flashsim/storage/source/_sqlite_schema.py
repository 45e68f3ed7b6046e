"""What CREATE TABLE says of a table's columns: names, affinities, defaults, and which one is the row id.

Source: "CREATE TABLE", "Datatypes In SQLite" section 3, and "Rowid Tables" (sqlite.org).
"""

import re
from dataclasses import dataclass
from itertools import pairwise

from flashsim.storage.source._sql import Token, folded, items, tokens

_TABLE_CONSTRAINTS = {"CONSTRAINT", "PRIMARY", "UNIQUE", "CHECK", "FOREIGN"}
_COLUMN_CONSTRAINTS = {"CONSTRAINT", "PRIMARY", "NOT", "NULL", "UNIQUE", "CHECK", "DEFAULT", "COLLATE", "REFERENCES", "AS"}
#: Words of a generated column that SQLite first takes for a part of its type, and drops.
_ALWAYS = re.compile(r"(generated)?[ \t\n\f\r]*always\Z", re.IGNORECASE | re.ASCII)
_SPACE = " \t\n\v\f\r"
_QUOTED_NAME = re.compile(r"""["'`\[]([^"'`\[]*).""", re.DOTALL)

Value = int | float | str | bytes | None


@dataclass
class Column:
    """A column: its declared affinity, and the value of rows that were stored before it was added.

    `default` is None where there is none; `default_problem` tells why a default cannot be evaluated.
    """

    name: str
    affinity: str
    default: Value = None
    default_problem: str = ""
    generated: bool = False
    is_row_id: bool = False


@dataclass
class TableDefinition:
    """What a CREATE TABLE statement defines."""

    columns: list[Column]
    without_row_id: bool


def parse_table(statement: str) -> TableDefinition:
    """The columns of a table."""
    parts = tokens(statement)
    if len(parts) < 2 or not (parts[0].is_word("CREATE") and parts[1].is_word("TABLE")):
        raise ValueError("it is no CREATE TABLE")
    opening = next((index for index, token in enumerate(parts) if token == Token("mark", "(")), len(parts))
    parenthesis, closing = items(parts, opening)
    columns: list[Column] = []
    keys: list[str] = []
    whole: set[str] = set()
    for item in parenthesis:
        if item[0].is_word(*_TABLE_CONSTRAINTS):
            keys += _primary_key(item)
            continue
        constraints = _type_end(item)
        declared = _type_name(statement[item[1].start : item[constraints - 1].end]) if constraints > 1 else ""
        column, is_key = _column(item[0].text, affinity_of(declared), item[constraints:])
        columns.append(column)
        if folded(declared) == "INTEGER":
            whole.add(folded(column.name))
            column.is_row_id = is_key
    if not columns:
        raise ValueError("no columns")
    if len(keys) == 1 and folded(keys[0]) in whole:
        next(column for column in columns if folded(column.name) == folded(keys[0])).is_row_id = True
    options = parts[closing + 1 :]
    without = any(first.is_word("WITHOUT") and second.is_word("ROWID") for first, second in pairwise(options))
    return TableDefinition(columns, without)


def _primary_key(item: list[Token]) -> list[str]:
    """The columns of PRIMARY KEY (...) among table constraints, which need no commas between them."""
    for index, token in enumerate(item[:-3]):
        if token.is_word("PRIMARY") and item[index + 1].is_word("KEY"):
            columns, _ = items(item, index + 2)
            return [next((part.text for part in column if part != Token("mark", "(")), "") for column in columns]
    return []


def _type_end(item: list[Token]) -> int:
    """Where a column's type ends, with the numbers in parentheses behind it, and its constraints begin."""
    index = 1
    while index < len(item) and item[index].kind in ("word", "quoted", "string") and not item[index].is_word(*_COLUMN_CONSTRAINTS):
        index += 1
    if 1 < index < len(item) and item[index] == Token("mark", "("):
        index = next((at for at in range(index, len(item)) if item[at] == Token("mark", ")")), len(item) - 1) + 1
    return index


def _type_name(written: str) -> str:
    """The type that SQLite keeps of what is written: with comments and lengths, and without quotes around the whole of it."""
    if len(written) >= 16:
        written = _ALWAYS.sub("", written).rstrip(_SPACE)
    quoted = _QUOTED_NAME.fullmatch(written)
    return quoted[1] if quoted else written


def affinity_of(type_name: str) -> str:
    """The affinity of a declared type ("Datatypes In SQLite", section 3.1)."""
    name = folded(type_name)
    if "INT" in name:
        return "INTEGER"
    if any(part in name for part in ("CHAR", "CLOB", "TEXT")):
        return "TEXT"
    if "BLOB" in name or not name:
        return "BLOB"
    return "REAL" if any(part in name for part in ("REAL", "FLOA", "DOUB")) else "NUMERIC"


def _column(name: str, affinity: str, constraints: list[Token]) -> tuple[Column, bool]:
    """A column, and whether it says PRIMARY KEY, which DESC keeps from being the row id."""
    column = Column(name, affinity)
    is_key = False
    depth = 0
    for index, token in enumerate(constraints):
        if token.kind == "mark" and token.text in "()":
            depth += 1 if token.text == "(" else -1
        if depth:
            continue
        following = constraints[index + 1 :]
        if token.is_word("PRIMARY"):
            if not (following and following[0].is_word("KEY")):
                raise ValueError("PRIMARY without KEY")
            is_key = not (len(following) > 1 and following[1].is_word("DESC"))
        elif token.is_word("AS"):
            column.generated = True
        elif token.is_word("DEFAULT"):
            try:
                column.default = _default(following, affinity)
            except ValueError as problem:
                column.default_problem = str(problem)
    return column, is_key


def _default(parts: list[Token], affinity: str) -> Value:
    """The constant that stands first, as a column of that affinity has it."""
    if not parts:
        raise ValueError("a default without a value")
    first = parts[0]
    sign = first.text if first.kind == "mark" and first.text in "+-" and len(parts) > 1 and parts[1].kind == "number" else ""
    if sign or first.kind == "number":
        return with_affinity(_number(sign, parts[1 if sign else 0].text), "NUMERIC" if affinity == "BLOB" else affinity)
    if first.kind == "blob":
        return bytes.fromhex(first.text[2:-1])
    if first.kind == "word" and first.text.upper() in ("NULL", "TRUE", "FALSE"):
        return {"NULL": None, "TRUE": 1, "FALSE": 0}[first.text.upper()]  # a whole number, in a text column too
    if first.kind in ("string", "quoted") or (first.kind == "word" and not first.text.upper().startswith("CURRENT_")):
        return with_affinity(first.text, affinity)
    raise ValueError("its default is an expression")


def _number(sign: str, text: str) -> int | str:
    """A number below 2**31 is one; any other is its own text until it meets an affinity, which knows no hexadecimal digits.

    So do the releases of SQLite that the tests meet (3.40); later ones take hexadecimal digits of 64 bits for an integer.
    """
    base = 16 if text[:2].lower() == "0x" else 10
    if base == 16 or text.isdigit():
        value = int(text, base)
        if value < 1 << 31:
            return -value if sign == "-" else value
    return text if sign == "+" else sign + text


def with_affinity(value: Value, affinity: str) -> Value:
    """A constant as a column of that affinity stores it ("Datatypes In SQLite", section 3)."""
    if affinity == "TEXT" and isinstance(value, int):
        return str(value)
    if affinity in ("INTEGER", "NUMERIC", "REAL") and isinstance(value, str):
        written = value.strip(_SPACE)
        if re.fullmatch(r"[+-]?[0-9]+", written) and -(1 << 63) <= int(written) < 1 << 63:
            value = int(written)
        elif re.fullmatch(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?", written):
            value = float(written)
    if affinity == "REAL" and isinstance(value, int):
        return float(value)
    if affinity in ("INTEGER", "NUMERIC") and isinstance(value, float) and value.is_integer() and abs(value) < 1 << 63:
        return int(value)
    return value
