"""Columns of a PostgreSQL table as statements of SQL define them: types, and the value of rows that are older than a column.

CREATE TABLE tells the columns in their order; ALTER TABLE after it adds, drops and renames them, as it did in the database: a column that
was dropped keeps its place in the rows.
Source: "CREATE TABLE", "ALTER TABLE" and "Data Types" of PostgreSQL's manual.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from decimal import ROUND_HALF_UP, Context, Decimal
from uuid import UUID

import pyarrow as pa

from flashsim.storage.page._postgresql import TYPES
from flashsim.storage.page._postgresql_values import ARROW, decimal_type

#: Tokens: commands to psql itself, constants, names, white space, comments, and all others; defaults need no texts with escapes.
_TOKEN = re.compile(
    r"""(?P<obeyed>(?:^|(?<=\n))\\[^\n]*)
    |(?P<dollars>\$(?P<tag>\w*)\$.*?\$(?P=tag)\$)
    |(?P<escaped>[eE]'(?:[^'\\]|\\.|'')*')
    |(?P<space>[ \t\n\f\r]+|--[^\n]*(?:\n|$)|/\*.*?(?:\*/|$))
    |(?P<string>'(?:[^']|'')*')
    |(?P<quoted>"(?:[^"]|"")*")
    |(?P<bounds>\[[^\]]*\])
    |(?P<number>0[xX][0-9A-Fa-f](?:_?[0-9A-Fa-f])*|(?:\d(?:_?\d)*(?:\.(?:\d(?:_?\d)*)?)?|\.\d(?:_?\d)*)(?:[eE][+-]?\d(?:_?\d)*)?)
    |(?P<word>[A-Za-z_\u0080-\U0010ffff][\w$\u0080-\U0010ffff]*)
    |(?P<mark>.)""",
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_MARKS = set("()+-*/%,.;<>=!|&~?:@#$^`")
_SPELLINGS = {
    "int2": "smallint, smallserial, serial2",
    "int4": "integer, int, serial, serial4",
    "int8": "bigint, bigserial, serial8",
    "float4": "real",
    "float8": "double precision",
    "bool": "boolean",
    "timestamp": "timestamp without time zone",
    "timestamptz": "timestamp with time zone",
    "bpchar": "char, character, nchar, national char, national character",
    "varchar": "char varying, character varying, nchar varying, national char varying, national character varying",
    "numeric": "decimal, dec",
}
_NAMES = {name: name for name in TYPES} | {name: kind for kind, names in _SPELLINGS.items() for name in names.split(", ")}
_TABLE_CONSTRAINTS = {"CONSTRAINT", "PRIMARY", "UNIQUE", "CHECK", "FOREIGN", "EXCLUDE", "LIKE"}
_COLUMN_CONSTRAINTS = {"CONSTRAINT", "NOT", "NULL", "CHECK", "DEFAULT", "GENERATED", "UNIQUE", "PRIMARY", "REFERENCES", "COLLATE"}
_COLUMN_CONSTRAINTS |= {"DEFERRABLE", "INITIALLY", "STORAGE", "COMPRESSION", "USING"}
#: Words of a type before a constant.
_TYPED = {"DATE", "TIMESTAMP", "TIMESTAMPTZ", "NUMERIC", "UUID", "TEXT", "BOOLEAN", "WITH", "WITHOUT", "TIME", "ZONE"}
#: Characters of the longest char(n) and varchar(n).
_LARGEST_MODIFIER = 10_485_760
#: A precision in bits up to which FLOAT is of 4 bytes.
_SINGLE = 24
#: Digits of a default while it is rounded.
_EXACT = Context(100)
_TRUE, _FALSE = ("t", "true", "y", "yes", "on", "1"), ("f", "false", "n", "no", "off", "0")


@dataclass(frozen=True)
class ColumnDefinition:
    """A column as rows hold it."""

    #: As PostgreSQL keeps it.
    name: str
    #: PostgreSQL's own name of its type.
    kind: str
    #: The numbers that limit its values, such as precision and scale.
    modifier: tuple[int, ...] = ()
    nullable: bool = True
    #: The value of rows that are older than the column; None is NULL.
    missing: pa.Scalar | None = None
    #: Why that value is not known, if it is not.
    problem: str = ""
    #: Whether it only takes room.
    dropped: bool = False


def column_type(column: ColumnDefinition) -> pa.DataType | None:
    """The Arrow type of a column; None for numbers of any precision, whose type follows from the values."""
    if column.kind != "numeric":
        return ARROW[column.kind]
    if not column.modifier:
        return None
    precision, scale = (*column.modifier, 0)[:2]
    return decimal_type(max(precision - min(scale, 0), scale), max(scale, 0))


def constant(column: ColumnDefinition, text: str) -> pa.Scalar:
    """Value of a column from a constant of SQL."""
    kind, arrow = column.kind, column_type(column)
    if kind == "numeric":
        number = Decimal(text)
        return pa.scalar(number if arrow is None else number.quantize(Decimal(1).scaleb(-arrow.scale), ROUND_HALF_UP, _EXACT), arrow)
    if kind.startswith("timestamp") and column.modifier and len(text.partition(".")[2]) > column.modifier[0]:
        raise ValueError("a time that is rounded")
    if kind == "bool":
        if text.lower() not in _TRUE + _FALSE:
            raise ValueError("no truth value")
        return pa.scalar(text.lower() in _TRUE)
    if kind == "uuid":
        return pa.scalar(UUID(text).bytes, arrow)
    if kind == "bytea":
        if not text.startswith("\\x"):
            raise ValueError("not in hexadecimal digits")
        return pa.scalar(bytes.fromhex(text[2:]), arrow)
    if kind == "bpchar" and column.modifier:
        text = text.ljust(column.modifier[0])
    if kind in ("float4", "float8"):
        return pa.scalar(float(text), arrow)
    return pa.scalar(text, pa.large_string()).cast(arrow)


@dataclass(frozen=True)
class Token:
    """A piece of SQL: its kind, and its text without quotes."""

    kind: str
    text: str

    def is_word(self, *words: str) -> bool:
        return self.kind == "word" and self.text.encode().upper().decode() in words


@dataclass
class TableDefinition:
    """Definition by statements: a table's name and its columns in the order in which rows hold them, dropped ones too."""

    name: str
    columns: list[ColumnDefinition] = field(default_factory=list)

    def place(self, name: str) -> int:
        places = [place for place, column in enumerate(self.columns) if column.name == name and not column.dropped]
        if not places:
            raise ValueError(f"ALTER TABLE names column {name}, which it does not have")
        return places[0]


def parse_table(text: str, table_name: str = "") -> TableDefinition:
    """The table that statements create, or the one of a name among several; other statements are passed over."""
    statements: list[list[Token]] = [[]]
    for token in _tokens(text):
        if token == Token("mark", ";"):
            statements.append([])
        else:
            statements[-1].append(token)
    created = [(_name(statement, at), statement) for statement in statements if (at := _created_name_index(statement))]
    names = [name for (name, _), _ in created]
    matches = [each for each in created if each[0][0] in (table_name, table_name.lower())] if table_name else created
    if len(matches) != 1:
        raise LookupError(*names)
    (name, at), statement = matches[0]
    table = TableDefinition(name, _columns(name, statement, at))
    for statement in statements:
        if [part.text.upper() for part in statement[:2]] == ["ALTER", "TABLE"]:
            _alter(statement, table)
    return table


def _created_name_index(statement: list[Token]) -> int:
    """Index of the name of a created table; 0 if the statement creates none."""
    at = next((at + 1 for at, part in enumerate(statement[:5]) if part.is_word("TABLE")), 0)
    return _after(statement, at, "IF", "NOT", "EXISTS") if at and statement[0].is_word("CREATE") else 0


def _columns(table: str, parts: list[Token], at: int) -> list[ColumnDefinition]:
    if at == len(parts) or parts[at] != Token("mark", "("):
        raise ValueError(f"table {table} is created from another, but a definition lists all columns")
    described, closing = _items(parts, at)
    if any(part.is_word("INHERITS", "OF") for part in parts[closing:]) or any(item[0].is_word("LIKE") for item in described):
        raise ValueError(f"table {table} has columns of another, but a definition lists all of them")
    columns = [_column(item, table) for item in described if not item[0].is_word(*_TABLE_CONSTRAINTS)]
    names = {column.name for column in columns}
    if len(names) < max(1, len(columns)):
        raise ValueError(f"table {table} has {'two columns of one name' if names else 'no columns'}")
    return columns


def _alter(parts: list[Token], table: TableDefinition) -> None:
    name, at = _name(parts, _after(parts, _after(parts, 2, "IF", "EXISTS"), "ONLY"))
    if name != table.name:
        return
    actions, _ = _items([*parts, Token("mark", ")")], at - 1)
    for action in actions:
        rest = action[_after(action, 1, "COLUMN") :]
        if not rest:
            continue
        if action[0].is_word("ADD") and not rest[0].is_word(*_TABLE_CONSTRAINTS):
            table.columns.append(_column(rest[_after(rest, 0, "IF", "NOT", "EXISTS") :], name))
        elif action[0].is_word("DROP") and not action[1].is_word("CONSTRAINT"):
            place = table.place(_identifier(rest[_after(rest, 0, "IF", "EXISTS")]))
            table.columns[place] = replace(table.columns[place], dropped=True)
        elif action[0].is_word("RENAME") and len(rest) == 3 and rest[1].is_word("TO"):
            place = table.place(_identifier(rest[0]))
            table.columns[place] = replace(table.columns[place], name=_identifier(rest[2]))
        elif action[0].is_word("ALTER") and not action[1].is_word("CONSTRAINT"):
            _alter_column(table, table.place(_identifier(rest[0])), rest[1:])


def _alter_column(table: TableDefinition, place: int, change: list[Token]) -> None:
    words = [part.text.upper() for part in change]
    column = table.columns[place]
    if words[:1] == ["TYPE"] or words[:3] == ["SET", "DATA", "TYPE"]:
        new = _column([Token("quoted", column.name), *change[words.index("TYPE") + 1 :]], table.name)
        table.columns[place] = replace(new, nullable=column.nullable)
    elif words[1:] == ["NOT", "NULL"]:
        table.columns[place] = replace(column, nullable=words[0] == "DROP")


def _tokens(text: str) -> list[Token]:
    tokens = []
    for match in _TOKEN.finditer(text):
        kind, word = str(match.lastgroup), match[0]
        if kind == "space":
            continue
        if kind == "mark" and word not in _MARKS:
            raise ValueError(f"{word!r} is not part of a statement")
        if kind == "string":
            word = word[1:-1].replace("''", "'")
        elif kind == "quoted":
            word = word[1:-1].replace('""', '"')
        elif kind == "number":
            word = word.replace("_", "")
        tokens.append(Token(kind, word))
    return tokens


def _items(parts: list[Token], opening: int) -> tuple[list[list[Token]], int]:
    """Items between the commas of a parenthesis, and the index where it closes."""
    items: list[list[Token]] = [[]]
    depth = 1
    for index in range(opening + 1, len(parts)):
        token = parts[index]
        if token.kind == "mark" and token.text in "()":
            depth += 1 if token.text == "(" else -1
            if depth == 0:
                return [item for item in items if item], index
        if depth == 1 and token == Token("mark", ","):
            items.append([])
        else:
            items[-1].append(token)
    raise ValueError("unbalanced parentheses")


def _after(parts: list[Token], at: int, *words: str) -> int:
    """Index behind some words, or `at` if they do not stand there."""
    words_there = parts[at : at + len(words)]
    return at + len(words) if len(words_there) == len(words) and all(map(Token.is_word, words_there, words)) else at


def _identifier(token: Token) -> str:
    return token.text if token.kind == "quoted" else token.text.lower()


def _name(parts: list[Token], at: int) -> tuple[str, int]:
    while at + 2 < len(parts) and parts[at + 1] == Token("mark", "."):
        at += 2
    if at >= len(parts) or parts[at].kind not in ("word", "quoted"):
        raise ValueError("a table has no name")
    return _identifier(parts[at]), at + 1


def _column(item: list[Token], table: str) -> ColumnDefinition:
    name = _identifier(item[0])
    where = f"column {name} of table {table}"
    if item[0].kind not in ("word", "quoted"):
        raise ValueError(f"{where}: that is not a name")
    end = next((at for at in range(1, len(item)) if item[at].is_word(*_COLUMN_CONSTRAINTS)), len(item))
    kind, modifier = _type(item[1:end], where)
    column = ColumnDefinition(name, kind, modifier)
    depth = 0
    for at in range(end, len(item)):
        token, following = item[at], item[at + 1 :]
        if token.kind == "mark" and token.text in "()":
            depth += 1 if token.text == "(" else -1
        if depth or token.kind != "word":
            continue
        if (token.is_word("NOT") and following and following[0].is_word("NULL")) or token.is_word("PRIMARY"):
            column = replace(column, nullable=False)
        elif token.is_word("DEFAULT") and not item[at - 1].is_word("BY"):  # GENERATED BY DEFAULT
            try:
                column = replace(column, missing=_default(following, column))
            except (ValueError, ArithmeticError, pa.ArrowException):
                column = replace(column, problem="its default is no constant that is understood here")
        elif token.is_word("GENERATED"):
            column = replace(column, problem="it is generated")
    return column


def _type(parts: list[Token], where: str) -> tuple[str, tuple[int, ...]]:
    words: list[str] = []
    numbers: list[int] = []
    depth, sign = 0, 1
    written = " ".join(part.text for part in parts)
    for at, part in enumerate(parts):
        if part.kind == "mark":
            depth += {"(": 1, ")": -1}.get(part.text, 0)
            sign = -1 if part.text == "-" else 1
            if part.text == ".":
                words.clear()
        elif depth:
            numbers.append(sign * int(part.text) if part.kind == "number" and part.text.isdigit() else 0)
        elif part.kind == "word":
            words.append(part.text.lower())
        elif not (part.kind == "quoted" and part.text != "char" and at + 1 == len(parts)):
            words.append("?")  # an array, or PostgreSQL's own type "char"
        else:
            words.append(part.text)
    name = " ".join(words)
    if name == "float":
        name, numbers = ("float4" if numbers and numbers[0] <= _SINGLE else "float8"), []
    if name not in _NAMES:
        raise ValueError(f"{where} is of type {written or '(none)'}, but only {', '.join(TYPES)} are read")
    if any(abs(number) > _LARGEST_MODIFIER for number in numbers):
        raise ValueError(f"{where} is of type {written}, which no table has")
    if _NAMES[name] == "bpchar" and name != "bpchar" and not numbers:
        numbers = [1]
    return _NAMES[name], tuple(numbers)


def _default(parts: list[Token], column: ColumnDefinition) -> pa.Scalar | None:
    """The constant that stands first, with casts after it."""
    constants = list(_constants(parts))
    while len(constants) > 1 and constants[0].is_word(*_TYPED):  # DATE '2000-01-01'
        constants = constants[1:]
    sign = constants[0].text if constants and constants[0].kind == "mark" and constants[0].text in "+-" else ""
    if len(constants) != (2 if sign else 1):
        raise ValueError("an expression")
    value = constants[-1]
    if value.is_word("NULL"):
        return None
    if value.kind not in ("number", "string") and not value.is_word("TRUE", "FALSE"):
        raise ValueError("an expression")
    if value.kind == "number" and not float(value.text):
        sign = ""  # a number without quotes has no negative zero
    return constant(column, sign + value.text)


def _constants(parts: list[Token]) -> Iterator[Token]:
    """The tokens of a default without parentheses around it and casts; they end where the next constraint begins."""
    cast, depth = False, 0
    for at, token in enumerate(parts):
        if token.kind == "mark" and token.text in "()":
            depth += 1 if token.text == "(" else -1
        elif token == Token("mark", ":"):
            cast = True
        elif not depth and token.is_word(*_COLUMN_CONSTRAINTS) and not (at == 0 and token.is_word("NULL")):
            return
        elif not cast or (token.kind == "mark" and token.text not in ".,"):
            yield token
