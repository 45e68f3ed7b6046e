"""SQLite, by Python's own module."""

from typing import Any

DISTRIBUTION, MODULE = "", "sqlite3"
SETTINGS = {
    "delete, extra": "durable opens atomic: EXTRA syncs the folder, too, once a rollback journal is deleted",
    "delete, full": "opens atomic: default; EXTRA adds durability if a power loss follows the commit closely",
    "truncate, full": "durable opens atomic: FULL syncs before it goes on",
    "persist, full": "durable opens atomic: FULL syncs before it goes on",
    "wal, full": "durable opens atomic: FULL syncs the log after each commit",
    "wal, normal": "opens atomic: consistent, but not durable",
    "delete, off": "none: the database may become corrupted",
}


def open_store(sqlite3: Any, setting: str) -> Any:
    mode, synchronous = setting.split(", ")
    store = sqlite3.connect("bank.db", isolation_level=None)
    for pragma in (f"journal_mode={mode}", f"synchronous={synchronous}"):
        store.execute(f"pragma {pragma}")
    store.execute("create table if not exists t(k text primary key, v text)")
    return store


def commit(store: Any, values: dict[str, str], _: str) -> None:
    store.execute("begin")
    store.executemany("insert or replace into t values (?, ?)", values.items())
    store.execute("commit")


def read(store: Any) -> dict[str, str]:
    assert store.execute("pragma integrity_check").fetchone()[0] == "ok", "integrity_check"
    return dict(store.execute("select k, v from t"))
