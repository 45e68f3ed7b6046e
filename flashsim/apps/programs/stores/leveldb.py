"""LevelDB, by plyvel."""

from typing import Any

DISTRIBUTION, MODULE = "plyvel", "plyvel"
SETTINGS = {
    "sync=True": "durable opens atomic: a write returns once the data has been pushed to persistent storage",
    "sync=False": "opens atomic: default; the last few updates may be lost if the machine crashes",
}


def open_store(plyvel: Any, _: str) -> Any:
    return plyvel.DB("db", create_if_missing=True)


def commit(store: Any, values: dict[str, str], setting: str) -> None:
    with store.write_batch(transaction=True, sync=setting == "sync=True") as batch:
        for key, value in values.items():
            batch.put(key.encode(), value.encode())


def read(store: Any) -> dict[bytes, bytes]:
    return dict(store)
