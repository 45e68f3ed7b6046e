"""Embedded stores, a small workload for each, and the check of what a power cut left of it.

The module imports only the standard library: it is also a program, which the Python runs that has the stores' packages.
"""

import importlib.metadata
import os
import signal
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import accumulate
from operator import or_
from runpy import run_path
from typing import Any, NamedTuple

#: Exit codes of a check.
LOST, CLOSED, TORN, DAMAGED, CLOSED_EMPTY = 3, 4, 5, 6, 7
#: Transactions, and the one before which the store is closed and opened again.
_COUNT, _AGAIN = 5, 4
#: Seconds that a check may take, and letters of its answer.
_LIMIT, _LONGEST = 20, 300


def _transaction(number: int) -> dict[str, str]:
    """What a transaction writes: two keys that all write, and one of its own; each value names the transaction."""
    return {key: f"{number}{key}" * length for key, length in (("a", 20), ("b", 100), (f"k{number}", 350 * number))}


#: What a store holds after each number of transactions.
_STATES: list[dict[str, str]] = list(accumulate(map(_transaction, range(1, _COUNT + 1)), or_, initial={}))


def _put_each(store: Any, values: Mapping[str, str], _: str = "") -> None:
    for key, value in values.items():
        store[key] = value
    getattr(store, "sync", bool)()


def _get_each(store: Any) -> dict[str, Any]:
    values = dict[str, Any]()
    for key in _STATES[-1]:
        with suppress(KeyError):
            values[key] = store[key]
    return {key: value for key, value in values.items() if value is not None}


class EmbeddedStore(NamedTuple):
    """A store: how it is opened, or made, in the current folder, how it commits a dictionary of texts, and how it is read.

    ``embedded_stores.toml`` explains the other parts.
    """

    #: Of the store, values and the setting.
    commit: Callable[[Any, Mapping[str, str], str], Any] = _put_each
    read: Callable[[Any], Mapping[Any, Any]] = _get_each
    module: str = ""
    opens: str = "open"
    arguments: Sequence[Any] = ("bank",)
    options: Mapping[str, Any] = {}
    distribution: str = ""
    settings: Mapping[str, Mapping[str, Any]] = {}
    source: str = ""
    imports: Sequence[str] = ()
    exclude: Sequence[str] = ()

    def open_in(self, setting: str) -> Any:
        """Open the store in the current folder."""
        given = self.settings[setting]
        module = importlib.import_module(given.get("module", self.module))
        store = getattr(module, self.opens)(*self.arguments, **self.options, **given.get("options", {}))
        return importlib.import_module(self.module).Shelf(store) if "module" in given else store


def _insert(store: Any, values: Mapping[str, str], setting: str) -> None:
    if "," in setting:  # of SQLite: the journal's mode, and how it syncs
        for pragma in zip(("journal_mode", "synchronous"), setting.split(", "), strict=True):
            store.execute("pragma {}={}".format(*pragma)).fetchall()
    store.execute("begin")
    store.execute("create table if not exists t(k varchar primary key, v varchar)")
    for pair in values.items():
        store.execute("insert or replace into t values (?, ?)", pair)
    store.execute("commit")


def _select(store: Any) -> dict[str, str]:
    store.execute("create table if not exists t(k varchar primary key, v varchar)")
    return dict(store.execute("select k, v from t").fetchall())


def _select_sqlite(store: Any) -> dict[str, str]:
    (state,) = store.execute("pragma integrity_check").fetchone()
    if state != "ok":
        raise ValueError(state)
    return _select(store)


def _put_leveldb(store: Any, values: Mapping[str, str], setting: str) -> None:
    with store.write_batch(transaction=True, sync=setting == "sync=True") as batch:
        for key, value in values.items():
            batch.put(key.encode(), value.encode())


def _put_lmdb(store: Any, values: Mapping[str, str], _: str) -> None:
    with store.begin(write=True) as transaction:
        transaction.cursor().putmulti([(key.encode(), value.encode()) for key, value in values.items()])


def _put_rocksdb(store: Any, values: Mapping[str, str], setting: str) -> None:
    rocksdict = sys.modules["rocksdict"].__dict__
    batch, options = rocksdict["WriteBatch"](), rocksdict["WriteOptions"]()
    for key, value in values.items():
        batch.put(key, value)
    options.sync = setting == "sync=True"
    store.write(batch, options)


def _put_cache(store: Any, values: Mapping[str, str], _: str) -> None:
    with store.transact():
        _put_each(store, values)


def _put_hdf5(store: Any, values: Mapping[str, str], _: str) -> None:
    for key, value in values.items():
        store.pop(key, None)
        store[key] = value
    store.flush()


def _put_tinyflux(store: Any, values: Mapping[str, str], _: str) -> None:
    point = sys.modules["tinyflux"].__dict__["Point"]
    store.insert_multiple([point(tags={"k": key, "v": value}) for key, value in values.items()])


def _put_ndbm(store: Any, values: Mapping[str, str], _: str) -> None:
    store.close()
    with sys.modules["dbm.ndbm"].__dict__["open"]("bank", "c") as again:
        _put_each(again, values)


#: Commits and reads, by name, where they are not `_put_each` and `_get_each`.
_CALLS: dict[str, tuple[Callable[..., Any], ...]] = {
    "sqlite": (_insert, _select_sqlite),
    "leveldb": (_put_leveldb, dict),
    "lmdb": (_put_lmdb, lambda store: dict(store.begin().cursor())),
    "duckdb": (_insert, _select),
    "turso": (_insert, _select),
    "zodb": (
        lambda store, values, _: (store.root().update(values), store.transaction_manager.commit()),
        lambda store: dict(store.root().items()),
    ),
    "rocksdb": (_put_rocksdb,),
    "diskcache": (_put_cache,),
    "sqlitedict": (lambda store, values, _: (store.update(values), store.commit()),),
    "kvlite": (lambda store, values, _: store.set_many(values.items()),),
    "unqlite": (lambda store, values, _: (store.begin(), store.update(values), store.commit()),),
    "vedis": (lambda store, values, _: (store.begin(), store.update(values), store.commit()),),
    "dbm.ndbm": (_put_ndbm,),
    "semidbm": (_put_each, dict),
    "pickledb": (lambda store, values, _: (store.load(), store.db.update(values), store.save()), lambda store: store.__enter__().db),
    "tinydb": (
        lambda store, values, _: store.insert_multiple({"k": key, "v": value} for key, value in values.items()),
        lambda store: {row["k"]: row["v"] for row in store},
    ),
    "tinyflux": (_put_tinyflux, lambda store: {row.tags["k"]: row.tags["v"] for row in store}),
    "h5py": (_put_hdf5, lambda store: {key: store[key][()] for key in store}),
    "zarr": (lambda store, values, _: store.attrs.update(values), lambda store: dict(store.attrs)),
}
with open(__file__.replace(".py", ".toml"), "rb") as _file:
    _parts: dict[str, dict[str, Any]] = tomllib.load(_file)
STORES = {
    name: EmbeddedStore(**about | dict(zip(("commit", "read"), _CALLS.get(name, ()), strict=False))) for name, about in _parts.items()
}


def store_of(name: str) -> EmbeddedStore:
    """A store, by its name or by a file that defines the parts of one as a dictionary ``STORE``."""
    return EmbeddedStore(**run_path(name)["STORE"]) if name.endswith(".py") else STORES[name]


def judge(there: Mapping[str, str], acknowledged: int, promise: str) -> tuple[int, str]:
    """The exit code, and what is wrong, of what a store holds after transactions that were acknowledged."""
    states = _STATES[: acknowledged + 2]
    before, following = states[acknowledged], states[-1]
    if there in (before, following):
        return 0, ""
    if there in states:
        return LOST, "acknowledged transactions are gone"
    is_kept = all(there.get(key) in (value, following[key]) for key, value in before.items())
    if any(value not in [state.get(key) for state in states] for key, value in there.items()):
        return (TORN, "a value that was not acknowledged is damaged") if is_kept else (DAMAGED, "an acknowledged value is damaged")
    if is_kept:
        return (TORN, "a part of a transaction is there") if "atomic" in promise else (0, "")
    return (DAMAGED, "transactions are mixed") if "atomic" in promise else (LOST, "an acknowledged value is gone or older")


def run(store: EmbeddedStore, setting: str) -> None:
    """Commit all transactions, and print the number of each that is acknowledged; 0, once the store has opened."""
    opened = store.open_in(setting)
    os.write(1, b"0\n")
    for number in range(1, _COUNT + 1):
        if number == _AGAIN:
            getattr(opened, "close", bool)()
            opened = store.open_in(setting)
        store.commit(opened, _transaction(number), setting)
        os.write(1, b"%d\n" % number)
    getattr(opened, "close", bool)()


def _look(store: EmbeddedStore, setting: str, acknowledged: int) -> tuple[int, str]:
    """The exit code, and what is wrong, of the store in the current folder."""
    try:
        there = store.read(store.open_in(setting))
    except BaseException as problem:  # some libraries raise what is no Exception
        text = f"{type(problem).__name__}: {problem}".partition("\n")[0]
        return CLOSED if acknowledged else CLOSED_EMPTY, text.replace(os.getcwd(), ".")
    pairs = ([each.decode(errors="replace") if isinstance(each, bytes) else str(each) for each in pair] for pair in there.items())
    return judge(dict(pairs), acknowledged, store.settings[setting]["promises"])


def serve(store: EmbeddedStore, setting: str) -> None:
    """Answer for images (`flashsim.apps.programs.check_server`), for each in a process of its own, which a library may end."""
    for module in (store.module, *store.imports):
        importlib.import_module(module)
    for line in sys.stdin:
        folder, printed = line.rstrip("\n").split("\t")
        with open(printed, encoding="ascii") as file:
            acknowledged = max(map(int, file), default=0)
        if not (child := os.fork()):
            signal.alarm(_LIMIT)
            os.chdir(folder)
            output = os.dup(1)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # where libraries print
            code, words = _look(store, setting, acknowledged)
            os.write(output, f"{code} {words[:_LONGEST]}".strip().encode() + b"\n")
            os._exit(0)
        if status := os.waitpid(child, 0)[1]:
            print(f"{CLOSED if acknowledged else CLOSED_EMPTY} the library ended the process: signal {status & 127}", flush=True)


def show_version(store: EmbeddedStore, _: str) -> None:
    """Print the version of a store's package; the exit code is 1 if it is not installed."""
    module = importlib.import_module(store.module)
    own = getattr(module, "sqlite_version", f"Python {sys.version.split()[0]}")
    print(importlib.metadata.version(store.distribution) if store.distribution else own)


if __name__ == "__main__":
    sys.path.pop(0)  # modules beside this one are none of the store's
    {"run": run, "serve": serve, "version": show_version}[sys.argv[1]](store_of(sys.argv[2]), sys.argv[3])
