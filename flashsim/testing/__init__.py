"""Tests of parts of one's own: each family's contract as a class to inherit from, Hypothesis strategies, and pytest fixtures.

::

    from flashsim.testing import ReplacementContract


    class TestMyPolicy(ReplacementContract):
        member = "mine.py"  # beside this file, or the name of a member

`flashsim.testing.strategies` draws devices, requests, traces, relations, page graphs and crash points; fixtures come with
``pytest_plugins = ["flashsim.testing.fixtures"]``, and ``settings.load_profile("flashsim")`` of Hypothesis sets no deadlines.
"""

import re
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

_missing = [name for name in ("pytest", "hypothesis") if find_spec(name) is None]
if _missing:
    raise ImportError(f"flashsim.testing needs {' and '.join(_missing)}; install with: pip install 'flashsim[testing]'")

import_module("pytest").register_assert_rewrite(f"{__name__}.contracts")
# The first case compiles or loads kernels, which takes longer than Hypothesis allows one.
import_module("hypothesis").settings.register_profile("flashsim", deadline=None)

if TYPE_CHECKING:  # each by its own name again, so that type checkers take it for one of this module
    from flashsim.testing.contracts.extensions import ExtensionContract as ExtensionContract
    from flashsim.testing.contracts.fetching import FetchContract as FetchContract
    from flashsim.testing.contracts.format import FormatContract as FormatContract
    from flashsim.testing.contracts.ftl import FtlContract as FtlContract
    from flashsim.testing.contracts.gc import GcContract as GcContract
    from flashsim.testing.contracts.joins import JoinContract as JoinContract
    from flashsim.testing.contracts.page import PageContract as PageContract
    from flashsim.testing.contracts.page_format import PageTraceContract as PageTraceContract
    from flashsim.testing.contracts.partitioning import PartitionContract as PartitionContract
    from flashsim.testing.contracts.placement import PlacementContract as PlacementContract
    from flashsim.testing.contracts.planners import PlannerContract as PlannerContract
    from flashsim.testing.contracts.programs import ProgramContract as ProgramContract
    from flashsim.testing.contracts.references import ReferencesContract as ReferencesContract
    from flashsim.testing.contracts.replacement import ReplacementContract as ReplacementContract
    from flashsim.testing.contracts.replay import ReplayContract as ReplayContract
    from flashsim.testing.contracts.restart import RestartContract as RestartContract
    from flashsim.testing.contracts.scheduler import SchedulerContract as SchedulerContract
    from flashsim.testing.contracts.source import SourceContract as SourceContract
    from flashsim.testing.contracts.transactions import TransactionContract as TransactionContract
    from flashsim.testing.contracts.wear import WearContract as WearContract
    from flashsim.testing.contracts.workload import WorkloadContract as WorkloadContract

#: Each family's contract, by the module of `flashsim.testing.contracts` that has the family's name; found in the modules' texts.
CONTRACTS = {
    path.stem: re.findall(r"^class (\w+)\(Contract\)", path.read_text(encoding="utf-8"), re.MULTILINE)[0]
    for path in sorted(Path(__file__).parent.glob("contracts/[!_]*.py"))
}

__all__ = ["CONTRACTS", *CONTRACTS.values()]


def __getattr__(name: str) -> Any:
    for module, contract in CONTRACTS.items():
        if contract == name:
            return getattr(import_module(f"{__name__}.contracts.{module}"), name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
