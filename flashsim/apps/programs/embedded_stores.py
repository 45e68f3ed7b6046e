"""Embedded stores, a small workload for each, and the check of what a power cut left of it.

The module imports only the standard library: it is also a program, which the Python runs that has the stores' packages.
"""

import importlib.metadata
import os
import signal
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from runpy import run_path
from typing import Any, NamedTuple

#: Transactions, and the one before which the store is closed and opened again.
_COUNT, _AGAIN = 5, 4
#: Exit codes of a check.
LOST, CLOSED, TORN, DAMAGED, CLOSED_EMPTY = 3, 4, 5, 6, 7
#: Seconds that a check may take, and letters of its answer.
_LIMIT, _LONGEST = 20, 300
_KEYS = ("a", "b", *(f"k{number}" for number in range(1, _COUNT + 1)))


def _put_each(store: Any, values: Mapping[str, str], _: str) -> None:
    for key, value in values.items():
        store[key] = value
    getattr(store, "sync", bool)()


def _get_each(store: Any) -> dict[str, Any]:
    return {key: value for key in _KEYS if (value := store.get(key)) is not None}


class EmbeddedStore(NamedTuple):
    """A store: how it opens or makes its files in the current folder, commits a dictionary of texts, and is read.

    Settings, promises and sources are explained in ``embedded_stores.toml``.
    """

    #: From the module and a setting.
    open_store: Callable[[Any, str], Any]
    #: Gets the store, values and the setting, and may return the store from then on.
    commit: Callable[[Any, Mapping[str, str], str], Any] = _put_each
    read: Callable[[Any], Mapping[Any, Any]] = _get_each
    module: str = ""
    distribution: str = ""
    settings: Mapping[str, str] = {}
    source: str = ""
    #: Globs of files that need not be durable.
    exclude: Sequence[str] = ()


def _table(store: Any) -> Any:
    store.execute("create table if not exists t(k varchar primary key, v varchar)")
    return store


def _open_sqlite(sqlite3: Any, setting: str) -> Any:
    store = sqlite3.connect("bank.db", isolation_level=None)
    for pragma in zip(("journal_mode", "synchronous"), setting.split(", "), strict=True):
        store.execute("pragma {}={}".format(*pragma)).fetchall()
    return _table(store)


def _insert(store: Any, values: Mapping[str, str], _: str) -> None:
    store.execute("begin")
    for pair in values.items():
        store.execute("insert or replace into t values (?, ?)", pair)
    store.execute("commit")


def _select(store: Any) -> dict[str, str]:
    return dict(store.execute("select k, v from t").fetchall())


def _select_sqlite(store: Any) -> dict[str, str]:
    (state,) = store.execute("pragma integrity_check").fetchone()
    if state != "ok":
        raise ValueError(state)
    return _select(store)


def _put_batch(store: Any, values: Mapping[str, str], setting: str) -> None:
    with store.write_batch(transaction=True, sync=setting == "sync=True") as batch:
        for key, value in values.items():
            batch.put(key.encode(), value.encode())


def _open_lmdb(lmdb: Any, setting: str) -> Any:
    option, _, value = setting.partition("=")
    return lmdb.open(".", map_size=1 << 20, **{option: value == "True"})


def _put_lmdb(store: Any, values: Mapping[str, str], _: str) -> None:
    with store.begin(write=True) as transaction:
        for key, value in values.items():
            transaction.put(key.encode(), value.encode())


def _put_rocksdb(store: Any, values: Mapping[str, str], setting: str) -> None:
    rocksdict = sys.modules["rocksdict"].__dict__
    batch, options = rocksdict["WriteBatch"](), rocksdict["WriteOptions"]()
    for key, value in values.items():
        batch.put(key, value)
    options.sync = setting == "sync=True"
    store.write(batch, options)


def _put_zodb(store: Any, values: Mapping[str, str], _: str) -> None:
    store.root().update(values)
    store.transaction_manager.commit()


def _open_cache(diskcache: Any, setting: str) -> Any:
    return diskcache.Cache("cache", sqlite_synchronous=1 + ("=2" in setting), disk_min_file_size=1000 if "files" in setting else 1 << 15)


def _put_cache(store: Any, values: Mapping[str, str], _: str) -> None:
    with store.transact():
        _put_each(store, values, "")


def _put_transaction(store: Any, values: Mapping[str, str], _: str) -> None:
    store.begin()
    _put_each(store, values, "")
    store.commit()


def _put_sqlitedict(store: Any, values: Mapping[str, str], _: str) -> None:
    store.update(values)
    store.commit()


def _put_and_close(store: Any, values: Mapping[str, str], _: str) -> Any:
    _put_each(store, values, "")
    store.close()
    return sys.modules["dbm.ndbm"].__dict__["open"]("bank", "c")


def _open_dbm(dbm: Any, _: str) -> Any:
    return dbm.open("bank", "c")


def _put_pickledb(store: Any, values: Mapping[str, str], _: str) -> None:
    store.db.update(values)
    store.save()


def _open_pickledb(pickledb: Any, _: str) -> Any:
    store = pickledb.PickleDB("bank.json")
    store.load()
    return store


def _put_tinydb(store: Any, values: Mapping[str, str], _: str) -> None:
    store.insert_multiple({"k": key, "v": value} for key, value in values.items())


def _put_tinyflux(store: Any, values: Mapping[str, str], _: str) -> None:
    point = sys.modules["tinyflux"].__dict__["Point"]
    store.insert_multiple([point(tags={"k": key, "v": value}) for key, value in values.items()])


def _put_hdf5(store: Any, values: Mapping[str, str], _: str) -> None:
    for key, value in values.items():
        if key in store:
            del store[key]
        store[key] = value
    store.flush()


#: How stores are called, by name; what is not called is in ``embedded_stores.toml``.
_CALLS: dict[str, tuple[Callable[..., Any], ...]] = {
    "sqlite": (_open_sqlite, _insert, _select_sqlite),
    "leveldb": (lambda plyvel, _: plyvel.DB("bank", create_if_missing=True), _put_batch, dict),
    "lmdb": (_open_lmdb, _put_lmdb, lambda store: dict(store.begin().cursor())),
    "duckdb": (lambda duckdb, _: _table(duckdb.connect("bank.db", config={"threads": 1})), _insert, _select),
    "turso": (lambda turso, _: _table(turso.connect("bank.db", isolation_level=None)), _insert, _select),
    "zodb": (lambda zodb, _: zodb.connection("bank.fs"), _put_zodb, lambda store: dict(store.root().items())),
    "rocksdb": (lambda rocksdict, _: rocksdict.Rdict("bank"), _put_rocksdb),
    "diskcache": (_open_cache, _put_cache),
    "sqlitedict": (lambda sqlitedict, _: sqlitedict.SqliteDict("bank.db"), _put_sqlitedict),
    "kvlite": (lambda kvlite, _: kvlite.KV(), lambda store, values, _: store.set_many(values.items()), _get_each),
    "unqlite": (lambda unqlite, _: unqlite.UnQLite("bank.unq"), _put_transaction),
    "vedis": (lambda vedis, _: vedis.Vedis("bank.vdb"), _put_transaction),
    "shelve": (lambda shelve, setting: shelve.Shelf(importlib.import_module(setting.partition(",")[0]).open("bank", "c")),),
    "dbm.dumb": (_open_dbm,),
    "dbm.gnu": (_open_dbm,),
    "dbm.ndbm": (_open_dbm, _put_and_close),
    "dbm.sqlite3": (_open_dbm,),
    "semidbm": (_open_dbm, _put_each, dict),
    "pysos": (lambda pysos, _: pysos.Dict("bank.sos"),),
    "pickledb": (_open_pickledb, _put_pickledb, lambda store: store.db),
    "tinydb": (lambda tinydb, _: tinydb.TinyDB("bank.json"), _put_tinydb, lambda store: {row["k"]: row["v"] for row in store}),
    "tinyflux": (
        lambda tinyflux, _: tinyflux.TinyFlux("bank.csv"),
        _put_tinyflux,
        lambda store: {row.tags["k"]: row.tags["v"] for row in store},
    ),
    "h5py": (lambda h5py, _: h5py.File("bank.h5", "a"), _put_hdf5, lambda store: {key: store[key][()] for key in store}),
    "zarr": (
        lambda zarr, _: zarr.open_group("bank.zarr", mode="a"),
        lambda store, values, _: store.attrs.update(values),
        lambda store: dict(store.attrs),
    ),
}
with open(__file__.replace(".py", ".toml"), "rb") as _file:
    STORES = {name: EmbeddedStore(*_CALLS[name], **about) for name, about in tomllib.load(_file).items()}


def store_of(name: str) -> EmbeddedStore:
    """A store, by its name or by a file that defines the parts of one as a dictionary ``STORE``."""
    return EmbeddedStore(**run_path(name)["STORE"]) if name.endswith(".py") else STORES[name]


def _states() -> Iterator[dict[str, str]]:
    """What the store holds after each number of transactions, from none on.

    A transaction writes two keys that all write, and one of its own; each value names the transaction.
    """
    state: dict[str, str] = {}
    yield dict(state)
    for number in range(1, _COUNT + 1):
        state |= _transaction(number)
        yield dict(state)


def _transaction(number: int) -> dict[str, str]:
    return {key: f"{number}{key}" * length for key, length in (("a", 20), ("b", 100), (f"k{number}", 350 * number))}


def judge(there: Mapping[str, str], acknowledged: int, promise: str) -> tuple[int, str]:
    """The exit code, and what is wrong, of what a store holds after transactions that were acknowledged."""
    states = list(_states())[: acknowledged + 2]
    before, following = states[acknowledged], states[-1]
    if there in (before, following):
        return 0, ""
    if there in states:
        return LOST, "acknowledged transactions are gone"
    known = {key: {state.get(key) for state in states} for key in following}
    is_kept = all(there.get(key) in (value, following[key]) for key, value in before.items())
    if any(value not in known.get(key, ()) for key, value in there.items()):
        return (TORN, "a value that was not acknowledged is damaged") if is_kept else (DAMAGED, "an acknowledged value is damaged")
    if is_kept:
        return (TORN, "half of a transaction is there") if "values" not in promise else (0, "")
    return (LOST, "an acknowledged value is gone or older") if "atomic" not in promise else (DAMAGED, "transactions are mixed")


def run(store: EmbeddedStore, setting: str) -> None:
    """Commit all transactions, and print the number of each that is acknowledged; 0, once the store has opened."""
    module = importlib.import_module(store.module)
    opened = store.open_store(module, setting)
    os.write(1, b"0\n")
    for number in range(1, _COUNT + 1):
        if number == _AGAIN:
            getattr(opened, "close", bool)()
            opened = store.open_store(module, setting)
        opened = store.commit(opened, _transaction(number), setting) or opened
        os.write(1, b"%d\n" % number)
    getattr(opened, "close", bool)()


def _look(store: EmbeddedStore, setting: str, acknowledged: int) -> tuple[int, str]:
    """The exit code, and what is wrong, of the store in the current folder."""
    try:
        there = store.read(store.open_store(importlib.import_module(store.module), setting))
    except BaseException as problem:  # some libraries raise what is no Exception
        text = f"{type(problem).__name__}: {problem}".partition("\n")[0]
        return CLOSED if acknowledged else CLOSED_EMPTY, text.replace(os.getcwd(), ".")
    texts = ([each.decode(errors="replace") if isinstance(each, bytes) else str(each) for each in pair] for pair in there.items())
    return judge(dict(texts), acknowledged, store.settings[setting].partition(":")[0])


def serve(store: EmbeddedStore, setting: str) -> None:
    """Answer for images (`flashsim.apps.programs.check_server`), for each in a process of its own, which a library may end."""
    importlib.import_module(store.module)
    for line in sys.stdin:
        folder, printed = line.rstrip("\n").split("\t")
        with open(printed, encoding="ascii") as file:
            acknowledged = max((int(number) for number in file), default=0)
        reading, writing = os.pipe()
        if not (child := os.fork()):
            signal.alarm(_LIMIT)
            os.chdir(folder)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            code, words = _look(store, setting, acknowledged)
            os.write(writing, f"{code} {words[:_LONGEST]}".encode())
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading, encoding="utf-8", errors="replace") as pipe:
            answer = pipe.read()
        _, status = os.waitpid(child, 0)
        if not answer:
            how = signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else f"exit code {os.WEXITSTATUS(status)}"
            answer = f"{CLOSED if acknowledged else CLOSED_EMPTY} the library ended the process: {how}"
        print("0" if answer.startswith("0") else answer, flush=True)


def show_version(store: EmbeddedStore, _: str) -> None:
    """Print the version of a store's package; the exit code is 1 if it is not installed."""
    module = importlib.import_module(store.module)
    own = f"Python {'.'.join(map(str, sys.version_info[:3]))}" + (f", SQLite {module.sqlite_version}" if store.module == "sqlite3" else "")
    print(importlib.metadata.version(store.distribution) if store.distribution else own)


if __name__ == "__main__":
    sys.path.pop(0)  # modules beside this one are none of the store's
    {"run": run, "serve": serve, "version": show_version}[sys.argv[1]](store_of(sys.argv[2]), sys.argv[3])
