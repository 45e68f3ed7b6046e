"""Provenance that a result carries so that it can be made again."""

import datetime
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

_PACKAGES = ("numpy", "scipy", "numba", "simpy", "pyarrow")


def flashsim_version() -> str:
    """The installed version, or ``"uninstalled"``."""
    try:
        return version("flashsim")
    except PackageNotFoundError:
        return "uninstalled"


def provenance(parameters: dict[str, Any], seed: int | None = None) -> dict[str, Any]:
    """Parameters, seed, versions and time of a run, as a JSON-ready mapping."""
    return {
        "flashsim": flashsim_version(),
        "parameters": parameters,
        "seed": seed,
        "python": platform.python_version(),
        "packages": {name: version(name) for name in _PACKAGES},
        "machine": platform.machine(),
        "created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }
