"""A worker process of flashsim's: its first import is flashsim's, and it ends with the process that started it."""

import os
import threading
import time
from collections.abc import Callable
from functools import cache
from typing import Any

#: Seconds after which a worker looks whether the process that started it is still there.
_LOOKS_EVERY = 0.5


def watched(parent: int, function: Callable[..., Any], *given: Any) -> Any:
    """Call a function in a process that ends with the one that started it, even if that was killed.

    What a worker calls is pickled by name.  This name comes before those of a user's module: `flashsim.siblings` has seen to it that
    they are found.
    """
    _watch(parent)
    return function(*given)


@cache
def _watch(parent: int) -> None:
    def end_with_parent() -> None:
        while os.getppid() == parent:
            time.sleep(_LOOKS_EVERY)
        os._exit(1)

    threading.Thread(target=end_with_parent, daemon=True).start()
