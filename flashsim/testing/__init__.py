"""Tests of parts of one's own: each family's contract as a class to inherit from, Hypothesis strategies, and pytest fixtures.

::

    from flashsim.testing import ReplacementContract


    class TestMyPolicy(ReplacementContract):
        member = "mine.py"  # beside this file, or the name of a member

`flashsim.testing.strategies` draws devices, requests, traces, relations, page graphs and crash points; fixtures come with
``pytest_plugins = ["flashsim.testing.fixtures"]``, and ``settings.load_profile("flashsim")`` of Hypothesis sets no deadlines.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

_missing = [name for name in ("pytest", "hypothesis") if find_spec(name) is None]
if _missing:
    raise ImportError(f"flashsim.testing needs {' and '.join(_missing)}; install with: pip install 'flashsim[testing]'")

import_module("pytest").register_assert_rewrite(f"{__name__}.contracts")
# The first case compiles or loads kernels, which takes longer than Hypothesis allows one.
import_module("hypothesis").settings.register_profile("flashsim", deadline=None)

if TYPE_CHECKING:
    from flashsim.testing.contracts.extensions import ExtensionContract
    from flashsim.testing.contracts.fetching import FetchContract
    from flashsim.testing.contracts.format import FormatContract
    from flashsim.testing.contracts.ftl import FtlContract
    from flashsim.testing.contracts.gc import GcContract
    from flashsim.testing.contracts.joins import JoinContract
    from flashsim.testing.contracts.page import PageContract
    from flashsim.testing.contracts.page_format import PageTraceContract
    from flashsim.testing.contracts.partitioning import PartitionContract
    from flashsim.testing.contracts.placement import PlacementContract
    from flashsim.testing.contracts.planners import PlannerContract
    from flashsim.testing.contracts.programs import ProgramContract
    from flashsim.testing.contracts.references import ReferencesContract
    from flashsim.testing.contracts.replacement import ReplacementContract
    from flashsim.testing.contracts.replay import ReplayContract
    from flashsim.testing.contracts.restart import RestartContract
    from flashsim.testing.contracts.scheduler import SchedulerContract
    from flashsim.testing.contracts.source import SourceContract
    from flashsim.testing.contracts.transactions import TransactionContract
    from flashsim.testing.contracts.wear import WearContract
    from flashsim.testing.contracts.workload import WorkloadContract

#: Each family's contract, by the module of `flashsim.testing.contracts` that has the family's name.
CONTRACTS = {
    "extensions": "ExtensionContract",
    "fetching": "FetchContract",
    "format": "FormatContract",
    "ftl": "FtlContract",
    "gc": "GcContract",
    "joins": "JoinContract",
    "page": "PageContract",
    "page_format": "PageTraceContract",
    "partitioning": "PartitionContract",
    "placement": "PlacementContract",
    "planners": "PlannerContract",
    "programs": "ProgramContract",
    "references": "ReferencesContract",
    "replacement": "ReplacementContract",
    "replay": "ReplayContract",
    "restart": "RestartContract",
    "scheduler": "SchedulerContract",
    "source": "SourceContract",
    "transactions": "TransactionContract",
    "wear": "WearContract",
    "workload": "WorkloadContract",
}

__all__ = [
    "CONTRACTS",
    "ExtensionContract",
    "FetchContract",
    "FormatContract",
    "FtlContract",
    "GcContract",
    "JoinContract",
    "PageContract",
    "PageTraceContract",
    "PartitionContract",
    "PlacementContract",
    "PlannerContract",
    "ProgramContract",
    "ReferencesContract",
    "ReplacementContract",
    "ReplayContract",
    "RestartContract",
    "SchedulerContract",
    "SourceContract",
    "TransactionContract",
    "WearContract",
    "WorkloadContract",
]


def __getattr__(name: str) -> Any:
    for module, contract in CONTRACTS.items():
        if contract == name:
            return getattr(import_module(f"{__name__}.contracts.{module}"), name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
