"""All commands, found by the folders of those who declare them: the floors' operations, and apps.

Each of these packages tells in `COMMANDS` which of its modules declares a command, and in `GROUPS` what its groups are for.
"""

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

_OPERATIONS, _APPS = "flashsim.operations", "flashsim.apps"
#: A command's ``module:operation``, or those of the commands of a group.
Places = Mapping[str, str | Mapping[str, str]]


def _read_declarations() -> tuple[Places, dict[str, str]]:
    commands: dict[str, Any] = {}
    groups: dict[str, str] = {}
    apps = sorted(path.parent.name for path in Path(__file__).parent.glob("apps/*/__init__.py"))
    for package in map(import_module, (_OPERATIONS, *(f"{_APPS}.{name}" for name in apps))):
        groups |= getattr(package, "GROUPS", {})
        for name, place in getattr(package, "COMMANDS", {}).items():
            if isinstance(place, str):
                commands[name] = f"{package.__name__}.{place}"
            else:
                commands.setdefault(name, {}).update({member: f"{package.__name__}.{each}" for member, each in place.items()})
    return commands, groups


COMMANDS, GROUPS = _read_declarations()


def functions() -> dict[str, str]:
    """Functions of all commands, ``module:operation`` each: ``flashsim device bench`` is `device_bench`."""
    places: dict[str, str] = {}
    for name, place in COMMANDS.items():
        places |= {name: place} if isinstance(place, str) else {f"{name}_{member}": each for member, each in place.items()}
    return {name.replace("-", "_"): place for name, place in places.items()}
