"""SQL queries as plans: parsed by sqlglot in DuckDB's dialect, of a subset that `LANGUAGE` names."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import chain, count
from string import ascii_lowercase, ascii_uppercase

import pyarrow as pa
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from algorithms.expressions.expression import Column, Expression, FunctionCall, columns_of, text_of
from algorithms.programs.aggregation import Aggregate
from algorithms.programs.top_k import Order
from flashsim.apps.smart.plans import Plan, Stage
from flashsim.apps.smart.scalars import LANGUAGE, Resolve, conjuncts, join_conditions, scalar, unsupported_error
from flashsim.core.errors import FlashsimError, SchemaError, UnknownNameError, shorten

_AGGREGATES: dict[type[exp.Expression], str] = {exp.Count: "count", exp.Sum: "sum", exp.Min: "min", exp.Max: "max", exp.Avg: "avg"}
_TABLE = {"this", "alias"}
_LOWER = str.maketrans(ascii_uppercase, ascii_lowercase)
#: Digits of a whole number of 64 bits.
_DIGITS_OF_64_BITS = 19
#: What sqlglot does not know is refused here, in one line.
logging.getLogger("sqlglot").setLevel(logging.CRITICAL)
_CLAUSES = {"expressions", "from_", "from", "joins", "where", "group", "having", "order", "limit", "offset", "distinct", "kind", "hint"}


def plan_of(query: str, schemas: Mapping[str, pa.Schema], rows: Mapping[str, int] | None = None) -> Plan:
    """The plan of a query; one that is no SQL, or outside the language, is a FlashsimError.

    Schemas and rows are those of each table, by the names that queries use: of joined tables the largest is scanned last, and the others
    lie in memory.
    """
    try:
        statements = [each for each in sqlglot.parse(query, dialect="duckdb") if each is not None]
        if len(statements) != 1 or not isinstance(statements[0], exp.Select):
            raise FlashsimError(f"query: one SELECT is needed; supported: {LANGUAGE}")
        return _Binder(schemas, rows or {}).bind(statements[0])
    except RecursionError:
        raise FlashsimError("query: its expressions are nested too deeply") from None
    except SqlglotError as problem:
        reason = str(problem).splitlines()[0].replace("\x1b[4m", "").replace("\x1b[0m", "")
        raise FlashsimError(f"query: {shorten(reason)}; supported: {LANGUAGE}") from None


@dataclass
class _SqlTable:
    name: str
    alias: str
    schema: pa.Schema
    used: set[str] = field(default_factory=set)
    merged: set[str] = field(default_factory=set)
    conditions: list[Expression] = field(default_factory=list)

    def columns(self, without_merged: bool) -> list[str]:
        """Its columns, with or without those that USING made one with another table's."""
        return [name for name in self.schema.names if not (without_merged and _fold_case(name) in self.merged)]


class _Binder:
    """Names and types of one SELECT."""

    def __init__(self, schemas: Mapping[str, pa.Schema], rows: Mapping[str, int]) -> None:
        self._schemas, self._rows = schemas, rows
        self._tables: dict[str, _SqlTable] = {}
        self._stages: list[Stage] = []
        self._builds: list[tuple[Plan, _SqlTable]] = []

    def bind(self, select: exp.Select) -> Plan:
        for clause, value in select.args.items():
            if value and clause not in _CLAUSES:
                raise unsupported_error(value[0] if isinstance(value, list) else value if isinstance(value, exp.Expression) else select)
        for clause in ("group", "distinct", "order"):
            part = select.args.get(clause)
            if part and any(value for name, value in part.args.items() if name != "expressions"):
                raise unsupported_error(part)
        plan = self._sources(select)
        self._outputs(select)
        for build, table in self._builds:
            object.__setattr__(build, "columns", self._columns(table))
        return replace(plan, columns=self._columns(self._tables[plan.alias]), stages=self._stages)

    def _columns(self, table: _SqlTable) -> tuple[str, ...]:
        """Columns that are read: the narrowest one, where only rows are counted."""
        return tuple(name for name in table.schema.names if name in table.used) or (table.schema.names[0],)

    def _add(self, node: exp.Expression) -> _SqlTable:
        alias, more = node.args.get("alias"), any(value for part, value in node.args.items() if part not in _TABLE)
        if more or not isinstance(node, exp.Table) or (alias and alias.columns):
            raise unsupported_error(node)
        name = node.name if node.name in self._schemas else {_fold_case(each): each for each in self._schemas}.get(_fold_case(node.name))
        if name is None:
            raise UnknownNameError("table", node.name, self._schemas)
        table = _SqlTable(name, node.alias_or_name, self._schemas[name])
        if "." in table.alias:
            raise SchemaError(f"query: a table named {table.alias!r}; give it a name without a dot with AS")
        if table.alias in self._tables:
            raise SchemaError(f"query: two tables are named {table.alias}; give one another name with AS")
        self._tables[table.alias] = table
        return table

    def _tables_named(self, table: str) -> list[_SqlTable]:
        tables = [each for each in self._tables.values() if _fold_case(table) in ("", _fold_case(each.alias))]
        if not tables:
            raise UnknownNameError("table", table, self._tables)
        return tables

    def _column(self, node: exp.Column) -> Column:
        """A column of one of the tables; of one that USING names the first."""
        tables, folded = self._tables_named(node.table), _fold_case(node.name)
        places = [(each, name) for each in tables for name in each.columns(not node.table) if _fold_case(name) == folded]
        if not places:
            raise UnknownNameError("column", node.name, {name for each in tables for name in each.schema.names})
        if len({each.alias for each, _ in places}) == 1 < len(places):  # names that differ in nothing but case
            spellings = " or ".join(name for _, name in places)
            places = [place for place in places if place[1] == node.name]
            if not places:
                raise SchemaError(f"query: column {node.name} may be {spellings}; spell it as one of them")
        if len(places) > 1:
            names = " and ".join(each.alias for each, _ in places)
            raise SchemaError(f"query: column {node.name} is in {names}; put a table's name before it")
        table, name = places[0]
        table.used.add(name)
        return Column(f"{table.alias}.{name}")

    def _resolve(self, node: exp.Expression) -> Expression | None:
        if isinstance(node, exp.Column):
            return self._column(node)
        if isinstance(node, tuple(_AGGREGATES)):
            raise FlashsimError(f"query: {node.sql(dialect='duckdb')} stands where rows are not aggregated yet")
        return None

    def _sources(self, select: exp.Select) -> Plan:
        source = select.args.get("from_") or select.args.get("from")
        if source is None:
            raise FlashsimError(f"query: it reads no table; supported: {LANGUAGE}")
        joined, semi = [self._add(source.this)], []
        conditions = conjuncts(select.args["where"].this) if select.args.get("where") else []
        for join in select.args.get("joins") or []:
            kind = " ".join(str(join.args.get(part) or "") for part in ("method", "side", "kind")).strip().upper()
            if kind not in ("", "INNER", "CROSS", "SEMI", "LEFT SEMI"):
                raise unsupported_error(join)
            using = [each.name for each in join.args.get("using") or []]
            owners = [self._column(exp.column(name)).name.partition(".")[0] for name in using]
            table, on = self._add(join.this), conjuncts(join.args.get("on"))
            for name, owner in zip(using, owners, strict=True):
                on.append(exp.EQ(this=exp.column(name, table=owner), expression=exp.column(name, table=table.alias)))
                table.merged.add(_fold_case(name))
            if "SEMI" in kind:
                semi.append((table, on))
                del self._tables[table.alias]
            else:
                joined.append(table)
                conditions += on
        semi_joins = [self._in(each) for each in conditions if isinstance(each, exp.In) and each.args.get("query")]
        semi_joins += [self._semi_join(table, on) for table, on in semi]
        waiting = self._by_table([scalar(each, self._resolve) for each in conditions if not each.args.get("query")])
        first = max(joined, key=lambda each: self._rows.get(each.name, 0)) if not semi_joins else joined[0]
        early = [each for each in semi_joins if each.parameters["probe"].startswith(f"{first.alias}.")]
        stages = [*early, *self._hash_joins(first, [each for each in joined if each is not first], waiting)]
        stages += [each for each in semi_joins if each not in early]
        self._stages = [*_selection(first.conditions), *stages, *_selection(waiting)]
        return Plan(first.name, first.alias, ())

    def _by_table(self, conditions: list[Expression]) -> list[Expression]:
        """Put conditions behind the scan of the only table that each reads; return the others."""
        rest = []
        for condition in conditions:
            aliases = {name.split(".")[0] for name in columns_of(condition)} or {next(iter(self._tables))}
            if len(aliases) > 1:
                rest.append(condition)
            else:
                self._tables[aliases.pop()].conditions.append(condition)
        return rest

    def _hash_joins(self, first: _SqlTable, others: list[_SqlTable], conditions: list[Expression]) -> list[Stage]:
        """A join with each other table, in an order in which an equality connects it; equalities that are used leave the conditions."""
        stages, joined = [], {first.alias}
        while others:
            connected = [(table, pair) for table in others for each in conditions if (pair := _equality(each, joined, table.alias))]
            if not connected:
                raise FlashsimError(f"query: no equality joins {others[0].alias} with {' and '.join(sorted(joined))}")
            table, (condition, probe, key) = connected[0]
            conditions.remove(condition)
            others.remove(table)
            joined.add(table.alias)
            build = Plan(table.name, table.alias, (), _selection(table.conditions))
            self._builds.append((build, table))
            stages.append(Stage("hash-join", {"probe": probe, "key": key}, f"{probe} = {key}", build))
        return stages

    def _in(self, node: exp.In) -> Stage:
        query = node.args["query"].unnest()
        if not isinstance(query, exp.Select) or node.args.get("negate"):
            raise unsupported_error(node)
        column, build = scalar(node.this, self._resolve), _Binder(self._schemas, self._rows).bind(query)
        if not isinstance(column, Column) or len(query.selects) != 1:
            raise unsupported_error(node)
        return Stage("semi-join", {"probe": column.name}, f"{column.name} in {build.alias}", build)

    def _semi_join(self, table: _SqlTable, on: list[exp.Expression]) -> Stage:
        """A semi-join with a table: an equality, and conditions of the table alone."""
        outer = dict(self._tables)
        self._tables = {**outer, table.alias: table}
        conditions = [scalar(each, self._resolve) for each in on]
        pairs = [pair for each in conditions if (pair := _equality(each, set(outer), table.alias))]
        if len(pairs) != 1 or len(self._by_table([each for each in conditions if each is not pairs[0][0]])):
            raise FlashsimError(f"query: SEMI JOIN {table.alias} needs one equality with it, and else conditions of it alone")
        self._tables = outer
        _, probe, key = pairs[0]
        stages = [*_selection(table.conditions), Stage("projection", {"columns": {key: Column(key)}}, key)]
        return Stage("semi-join", {"probe": probe}, f"{probe} in {key}", Plan(table.name, table.alias, self._columns(table), stages))

    def _outputs(self, select: exp.Select) -> None:
        items = [item for each in select.expressions for item in self._expand_star(each)]
        group = select.args.get("group")
        orders = select.args["order"].expressions if select.args.get("order") else []
        having = select.args.get("having")
        names = _unique([each.alias or (each.name if isinstance(each, exp.Column) else each.sql(dialect="duckdb")) for each in items])
        nodes = [each.this if isinstance(each, exp.Alias) else each for each in items]
        order_nodes = [_order_expression(each.this, nodes, names) for each in orders]
        every = [*nodes, *order_nodes, *([having.this] if having else [])]
        resolve: Resolve = self._resolve
        if group or having or any(each.find(*_AGGREGATES) for each in every):
            resolve = self._aggregate(group.expressions if group else [], every, nodes, names)
            if having:
                self._stages += _selection([scalar(having.this, resolve)])
        columns = {name: scalar(node, resolve) for name, node in zip(names, nodes, strict=True)}
        mark = next(mark for mark in ("order" + "." * dots for dots in count(1)) if not any(name.startswith(mark) for name in names))
        hidden = {f"{mark}{number}": scalar(node, resolve) for number, node in enumerate(order_nodes)}
        text = ", ".join(f"{text_of(each)} AS {name}" for name, each in columns.items())
        self._stages.append(Stage("projection", {"columns": columns | hidden}, text))
        if select.args.get("distinct"):
            if orders and not {each.sql() for each in order_nodes} <= {each.sql() for each in nodes}:
                raise FlashsimError("query: ORDER BY of SELECT DISTINCT must name columns of the result")
            self._stages.append(Stage("aggregation", {"keys": [*names, *hidden], "aggregates": []}, f"distinct {', '.join(names)}"))
        limit, skip = (_whole_number(select.args.get(name)) for name in ("limit", "offset"))
        if orders or limit is not None or skip is not None:
            ways = [(bool(each.args.get("desc")), bool(each.args.get("nulls_first"))) for each in orders]
            by = [Order(name, *way) for name, way in zip(hidden, ways, strict=True)]
            text = f"{', '.join(each.sql(dialect='duckdb') for each in orders) or 'any order'}{'' if limit is None else f', {limit} rows'}"
            self._stages.append(Stage("top-k", {"orders": by, "limit": limit, "skip": skip or 0, "columns": len(columns)}, text))

    def _expand_star(self, node: exp.Expression) -> list[exp.Expression]:
        """The columns that a star stands for; any other expression as it is."""
        star = node.this if isinstance(node, exp.Column) else node
        if not isinstance(star, exp.Star):
            return [node]
        if any(star.args.values()):
            raise unsupported_error(node)
        table = "" if star is node else node.text("table")
        return [exp.column(name, table=each.alias) for each in self._tables_named(table) for name in each.columns(not table)]

    def _aggregate(
        self, groups: list[exp.Expression], every: list[exp.Expression], nodes: list[exp.Expression], names: list[str]
    ) -> Resolve:
        """Add a projection of keys and arguments, and the aggregation; return what resolves names behind it."""
        own = {_fold_case(name) for each in self._tables.values() for name in each.schema.names}  # come before the result's
        is_own = [isinstance(each, exp.Column) and _fold_case(each.name) in own for each in groups]
        groups = [each if as_is else _order_expression(each, nodes, names) for each, as_is in zip(groups, is_own, strict=True)]
        keys = {each.sql(): f"key.{number}" for number, each in enumerate(groups)}
        columns: dict[str, Expression] = {f"key.{number}": scalar(each, self._resolve) for number, each in enumerate(groups)}
        aggregates: dict[str, Aggregate] = {}
        for node in (found for each in every for found in each.find_all(*_AGGREGATES)):
            if node.sql() not in aggregates:
                aggregates[node.sql()] = self._bound_aggregate(node, len(aggregates), columns)
        if not columns and not aggregates:  # HAVING alone makes one group of all rows
            aggregates["COUNT(*)"] = Aggregate("count", None, "aggregate.0")
        computed = {text: each.name for text, each in aggregates.items()} | keys

        def resolve(node: exp.Expression) -> Expression | None:
            if node.sql() in computed:
                return Column(computed[node.sql()])
            if isinstance(node, exp.Column):
                for each, name in zip(groups, keys.values(), strict=True):
                    if isinstance(each, exp.Column) and self._column(each) == self._column(node):
                        return Column(name)
                raise SchemaError(f"query: column {node.name} is neither in GROUP BY nor in an aggregate")
            return None

        if not columns:  # rows are counted, and nothing of them is needed
            table = next(iter(self._tables.values()))
            columns = {"any": Column(f"{table.alias}.{self._columns(table)[0]}")}
        self._stages.append(Stage("projection", {"columns": columns}, ", ".join(map(text_of, columns.values()))))
        text = ", ".join([*(each.sql(dialect="duckdb") for each in groups), *aggregates])
        self._stages.append(Stage("aggregation", {"keys": list(keys.values()), "aggregates": list(aggregates.values())}, text))
        return resolve

    def _bound_aggregate(self, node: exp.Expression, number: int, columns: dict[str, Expression]) -> Aggregate:
        function, name = _AGGREGATES[type(node)], f"aggregate.{number}"
        if isinstance(node.this, exp.Distinct) or any(value for part, value in node.args.items() if part not in ("this", "big_int")):
            raise unsupported_error(node)
        if isinstance(node.this, exp.Star) or node.this is None:
            if function != "count":
                raise unsupported_error(node)
            return Aggregate(function, None, name)
        argument = scalar(node.this, self._resolve)
        column = next((known for known, each in columns.items() if each == argument), f"argument.{number}")
        columns[column] = argument
        return Aggregate(function, column, name)


def _fold_case(name: str) -> str:
    """A name by which others of other case are found, of ASCII alone, as DuckDB has it."""
    return name.translate(_LOWER)


def _equality(condition: Expression, joined: set[str], alias: str) -> tuple[Expression, str, str] | None:
    """An equality of a column of some tables and one of another, with both columns in that order."""
    if not (
        isinstance(condition, FunctionCall) and condition.function == "=" and all(isinstance(each, Column) for each in condition.arguments)
    ):
        return None
    left, right = (name for each in condition.arguments for name in columns_of(each))
    for probe, key in ((left, right), (right, left)):
        if probe.split(".")[0] in joined and key.split(".")[0] == alias:
            return condition, probe, key
    return None


def _selection(conditions: list[Expression]) -> list[Stage]:
    if not conditions:
        return []
    predicate = join_conditions("and", conditions)
    return [Stage("selection", {"predicate": predicate}, text_of(predicate))]


def _order_expression(node: exp.Expression, nodes: list[exp.Expression], names: list[str]) -> exp.Expression:
    """Expression that ORDER BY or GROUP BY names: a column of the result by its place or name, or an expression."""
    if not node.find(exp.Column, *_AGGREGATES):
        if not isinstance(node, exp.Literal) or node.is_string or not node.this.isdigit():
            raise unsupported_error(node)
        if len(node.this) > _DIGITS_OF_64_BITS or not 1 <= int(node.this) <= len(nodes):
            raise FlashsimError(f"query: column {node.this} of the result, which has {len(nodes)}")
        return nodes[int(node.this) - 1]
    if isinstance(node, exp.Column) and not node.table:
        for name, known in ((node.name, names), (_fold_case(node.name), list(map(_fold_case, names)))):
            if name in known:
                return nodes[known.index(name)]
    return node


def _unique(names: list[str]) -> list[str]:
    unique: list[str] = []
    for name in names:
        unique.append(next(each for each in chain([name], (f"{name}_{number}" for number in count(1))) if each not in unique))
    return unique


def _whole_number(clause: exp.Expression | None) -> int | None:
    if clause is None:
        return None
    node = clause.args.get("expression") or clause.this
    is_number = isinstance(node, exp.Literal) and not node.is_string and node.this.isdigit()
    if clause.args.get("limit_options") or not is_number or len(node.this) > _DIGITS_OF_64_BITS or int(node.this) >= 1 << 63:
        raise unsupported_error(clause)
    return int(node.this)
