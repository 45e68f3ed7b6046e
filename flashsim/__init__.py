"""What a database algorithm costs on a storage device, in virtual time, from Python: ``import flashsim as fs``.

``dir(fs)`` lists the names, such as `fs.drive` and `fs.join`.  Each is a module of ``flashsim.operations.face``, imported when it is
first asked for.  Importing this package first makes sure that its three siblings can be imported (see `flashsim.siblings`).
"""

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from flashsim.siblings import foreign_system, settle, started_as_command

__version__ = "0.1.0"

_problem = foreign_system() or settle(Path(__file__).parent)
if _problem:
    if started_as_command():  # the command itself may be what is shadowed, so nobody else could report this
        print(f"flashsim: {_problem}", file=sys.stderr)
        raise SystemExit(2)
    raise ImportError(_problem)

#: Where the names of the front door are, by name and not by import: this room lies below that one.
_FACE = "flashsim.operations.face"


def _names() -> list[str]:
    """The names of the front door: the modules of its folder."""
    places: list[str] = list(import_module(_FACE).__path__)
    return sorted(path.stem for place in places for path in Path(place).glob("[!_]*.py"))


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(f"module 'flashsim' has no attribute '{name}'")
    if name in _names():
        value = globals()[name] = getattr(import_module(f"{_FACE}.{name}"), name)
        return value
    from flashsim.core.errors import UnknownNameError

    raise AttributeError(str(UnknownNameError("flashsim", name, _names())))


def __dir__() -> list[str]:
    return sorted({*_names(), *(name for name in globals() if name.startswith("__"))})
