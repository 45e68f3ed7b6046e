"""TinyDB, with its JSON storage."""

from typing import Any

DISTRIBUTION, MODULE = "tinydb", "tinydb"
SETTINGS = {"JSONStorage": "durable opens values: default; syncs after each write"}


def open_store(tinydb: Any, _: str) -> Any:
    return tinydb.TinyDB("db.json")


def commit(store: Any, values: dict[str, str], _: str) -> None:
    store.insert_multiple({"k": key, "v": value} for key, value in values.items())


def read(store: Any) -> dict[str, str]:
    return {row["k"]: row["v"] for row in store}
