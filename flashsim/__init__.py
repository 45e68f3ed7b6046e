"""What a database algorithm costs on a storage device, in virtual time, from Python: ``import flashsim as fs``.

``dir(fs)`` lists the names, such as `fs.drive` and `fs.join`.  Each is a command (``flashsim device bench`` is `fs.device_bench`) or a
module of a folder ``face``, imported when it is first asked for.  Importing this package first makes sure that its three siblings can be
imported (see `flashsim.siblings`).
"""

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from flashsim.siblings import foreign_system, settle, started_as_command

__version__ = "1.0.0"

_problem = foreign_system() or settle(Path(__file__).parent)
if _problem:
    if started_as_command():  # the command itself may be what is shadowed, so nobody else could report this
        print(f"flashsim: {_problem}", file=sys.stderr)
        raise SystemExit(2)
    raise ImportError(_problem)


def _places() -> dict[str, str]:
    """The names of the front door, ``module:name`` each: all commands, and the modules of the folders `face`."""
    here = Path(__file__).parent
    files = [path.relative_to(here.parent) for folder in ("operations", "apps/*") for path in here.glob(f"{folder}/face/[!_]*.py")]
    commands: dict[str, str] = import_module("flashsim.command_table").functions()
    return commands | {path.stem: f"{'.'.join(path.with_suffix('').parts)}:{path.stem}" for path in files}


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(f"module 'flashsim' has no attribute '{name}'")
    if place := _places().get(name):
        module, _, function = place.partition(":")
        value = globals()[name] = getattr(import_module(module), function)
        return value
    from flashsim.core.errors import UnknownAttributeError, UnknownNameError
    from flashsim.operations import OTHER_NAMES, RENAMED

    if instead := RENAMED.get(name) or OTHER_NAMES.get(name):
        raise UnknownAttributeError(f"module 'flashsim' has no attribute '{name}': {instead}")
    raise UnknownAttributeError(str(UnknownNameError("flashsim", name, sorted(_places()))))


def __dir__() -> list[str]:
    return sorted({*_places(), *(name for name in globals() if name.startswith("__"))})
