"""Tests of parts of one's own: each family's contract as a class to inherit from, Hypothesis strategies, and pytest fixtures.

::

    from flashsim.testing import ReplacementContract


    class TestMyPolicy(ReplacementContract):
        member = "mine.py"  # beside this file, or the name of a member

`flashsim.testing.strategies` draws devices, requests, traces, relations, page graphs and crash points; fixtures come with
``pytest_plugins = ["flashsim.testing.fixtures"]``, and ``settings.load_profile("flashsim")`` of Hypothesis sets no deadlines.
"""

import re
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

_missing = [name for name in ("pytest", "hypothesis") if find_spec(name) is None]
if _missing:
    raise ImportError(f"flashsim.testing needs {' and '.join(_missing)}; install with: pip install 'flashsim[testing]'")

import_module("pytest").register_assert_rewrite(f"{__name__}.contracts")
# The first case compiles or loads kernels, which takes longer than Hypothesis allows one.
import_module("hypothesis").settings.register_profile("flashsim", deadline=None)

if TYPE_CHECKING:  # type checkers do not follow `__getattr__`
    from flashsim.testing.contracts.drives import *  # noqa: F403
    from flashsim.testing.contracts.extensions import *  # noqa: F403
    from flashsim.testing.contracts.fetching import *  # noqa: F403
    from flashsim.testing.contracts.format import *  # noqa: F403
    from flashsim.testing.contracts.joins import *  # noqa: F403
    from flashsim.testing.contracts.operators import *  # noqa: F403
    from flashsim.testing.contracts.page_format import *  # noqa: F403
    from flashsim.testing.contracts.replacement import *  # noqa: F403
    from flashsim.testing.contracts.replay import *  # noqa: F403
    from flashsim.testing.contracts.storage import *  # noqa: F403
    from flashsim.testing.contracts.workloads import *  # noqa: F403

_CONTRACT = re.compile(r"^class (\w+)\(Contract\):$.*?^    FAMILY(?:, STEPWISE)? = (\w+)", re.MULTILINE | re.DOTALL)


def _contracts() -> Iterator[tuple[str, str]]:
    """Each family's folder, and its contract as ``module:class``, from the text of `contracts`: all families load slowly."""
    for path in sorted(Path(__file__).parent.glob("contracts/[!_]*.py")):
        text = path.read_text(encoding="utf-8")
        for name, family in _CONTRACT.findall(text):
            home = re.search(rf"^from [\w.]*?(\w+)(?:\.base)? import .*\b{family}\b", text, re.MULTILINE)
            assert home is not None
            yield home[1], f"{path.stem}:{name}"


#: Each family's contract, by the module of `flashsim.testing.contracts` that has it.
CONTRACTS = dict(sorted(_contracts()))

__all__ = ["CONTRACTS", *(contract.partition(":")[2] for contract in CONTRACTS.values())]


def __getattr__(name: str) -> Any:
    for contract in CONTRACTS.values():
        if contract.endswith(f":{name}"):
            return resolve_name(f"{__name__}.contracts.{contract}")
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
