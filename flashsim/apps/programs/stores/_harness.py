"""The workload of a store, and the check of what a power cut left of it; a program of its own, in the Python that has the store."""

import importlib.metadata
import importlib.util
import json
import os
import signal
import sys
from collections.abc import Iterator
from typing import Any

#: Transactions, and the one before which the store is closed and opened again.
_COUNT, _AGAIN = 5, 4
#: Exit codes of a check: acknowledged data lost, does not open, half of a transaction there, does not open before it was ever opened.
LOST, CLOSED, TORN, UNBORN = 3, 4, 5, 6
#: Seconds that a check may take.
_LIMIT = 20


def transaction(number: int) -> dict[str, str]:
    """What a transaction writes: two keys that all write, and one of its own; each value names the transaction."""
    sizes = {"a": 40, "b": 200, f"k{number}": 700 * number}
    return {key: f"{number}{key}" * (size // 2) for key, size in sizes.items()}


def states() -> Iterator[dict[str, str]]:
    """What the store holds after each number of transactions, from none on."""
    state: dict[str, str] = {}
    yield dict(state)
    for number in range(1, _COUNT + 1):
        state |= transaction(number)
        yield dict(state)


def judge(there: dict[str, str], acknowledged: int, promise: str) -> tuple[int, str]:
    """The exit code, and what is wrong, of what a store holds."""
    before, *after = list(states())[acknowledged : acknowledged + 2]
    following = after[0] if after else before
    if there in (before, following):
        return 0, ""
    if any(there.get(key) not in (value, following[key]) for key, value in before.items()):
        old = any(there.get(key) in (None, state.get(key)) for state in states() for key in before if there.get(key) != before[key])
        return LOST, "an acknowledged value is gone or older" if old else "an acknowledged value is damaged"
    if any(value not in (before.get(key), following.get(key)) for key, value in there.items()):
        return TORN, "a value that was not acknowledged is damaged"
    return (0, "") if "values" in promise else (TORN, "half of a transaction is there")


def run(store: Any, module: Any, setting: str) -> None:
    """Commit all transactions, and print the number of each that is acknowledged."""
    opened = store.open_store(module, setting)
    os.write(1, b"0\n")
    for number in range(1, _COUNT + 1):
        if number == _AGAIN:
            close(opened)
            opened = store.open_store(module, setting)
        if hasattr(store, "commit"):
            opened = store.commit(opened, transaction(number), setting) or opened
        else:
            opened.update(transaction(number))
            getattr(opened, "sync", bool)()
        os.write(1, b"%d\n" % number)
    close(opened)


def close(opened: Any) -> None:
    getattr(opened, "close", bool)()


def look(store: Any, module: Any, setting: str, printed: str) -> tuple[int, str]:
    """The exit code, and what is wrong, of the store in the current folder."""
    with open(printed, encoding="ascii") as file:
        acknowledged = [int(line) for line in file]
    try:
        opened = store.open_store(module, setting)
        there = store.read(opened) if hasattr(store, "read") else dict(opened.items())
    except BaseException as problem:
        return CLOSED if acknowledged else UNBORN, f"{type(problem).__name__}: {problem}".partition("\n")[0].replace(os.getcwd(), ".")
    texts = {_text(key): _text(value) for key, value in there.items()}
    return judge(texts, max(acknowledged, default=0), store.SETTINGS[setting].partition(":")[0])


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def serve(store: Any, module: Any, setting: str) -> None:
    """Answer for one image after the other, each in a process of its own, which the store's library may end."""
    for line in sys.stdin:
        folder, printed = line.rstrip("\n").split("\t")
        reading, writing = os.pipe()
        if not (child := os.fork()):
            signal.alarm(_LIMIT)
            os.chdir(folder)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            code, words = look(store, module, setting, printed)
            os.write(writing, f"{code} {words[:300]}".encode())
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading, encoding="utf-8", errors="replace") as pipe:
            answer = pipe.read()
        _, status = os.waitpid(child, 0)
        if not answer:
            acknowledged = os.path.getsize(printed)
            signals = signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else "an exit"
            answer = f"{CLOSED if acknowledged else UNBORN} the library ended the process by {signals}"
        print("0" if answer.startswith("0") else answer, flush=True)


def main(action: str, path: str, setting: str = "") -> None:
    spec = importlib.util.spec_from_file_location("store", path)
    assert spec and spec.loader
    store = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(store)
    if action == "version":
        try:
            importlib.import_module(store.MODULE)
            version = importlib.metadata.version(store.DISTRIBUTION) if store.DISTRIBUTION else sys.version.split()[0]
        except ImportError as problem:
            sys.exit(str(problem))
        print(json.dumps(version))
        return
    module = importlib.import_module(store.MODULE)
    (run if action == "run" else serve)(store, module, setting)


if __name__ == "__main__":
    main(*sys.argv[1:])
