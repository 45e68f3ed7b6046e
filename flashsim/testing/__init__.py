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
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

_missing = [name for name in ("pytest", "hypothesis") if find_spec(name) is None]
if _missing:
    raise ImportError(f"flashsim.testing needs {' and '.join(_missing)}; install with: pip install 'flashsim[testing]'")

import_module("pytest").register_assert_rewrite(f"{__name__}.contracts")
# The first case compiles or loads kernels, which takes longer than Hypothesis allows one.
import_module("hypothesis").settings.register_profile("flashsim", deadline=None)

if TYPE_CHECKING:  # each by its own name again, so that type checkers take it for one of this module
    from flashsim.testing.contracts.drives import FtlContract as FtlContract
    from flashsim.testing.contracts.drives import GcContract as GcContract
    from flashsim.testing.contracts.drives import SchedulerContract as SchedulerContract
    from flashsim.testing.contracts.drives import WearContract as WearContract
    from flashsim.testing.contracts.extensions import ExtensionContract as ExtensionContract
    from flashsim.testing.contracts.extensions import RestartContract as RestartContract
    from flashsim.testing.contracts.fetching import FetchContract as FetchContract
    from flashsim.testing.contracts.fetching import PlannerContract as PlannerContract
    from flashsim.testing.contracts.format import FormatContract as FormatContract
    from flashsim.testing.contracts.joins import JoinContract as JoinContract
    from flashsim.testing.contracts.operators import PartitionContract as PartitionContract
    from flashsim.testing.contracts.operators import ProgramContract as ProgramContract
    from flashsim.testing.contracts.page_format import PageTraceContract as PageTraceContract
    from flashsim.testing.contracts.replacement import ReplacementContract as ReplacementContract
    from flashsim.testing.contracts.replay import ReplayContract as ReplayContract
    from flashsim.testing.contracts.storage import PageContract as PageContract
    from flashsim.testing.contracts.storage import PlacementContract as PlacementContract
    from flashsim.testing.contracts.storage import SourceContract as SourceContract
    from flashsim.testing.contracts.workloads import ReferencesContract as ReferencesContract
    from flashsim.testing.contracts.workloads import TransactionContract as TransactionContract
    from flashsim.testing.contracts.workloads import WorkloadContract as WorkloadContract

#: Each family's contract, by the module of `flashsim.testing.contracts` that has it.
CONTRACTS = {
    "extensions": "extensions:ExtensionContract",
    "fetching": "fetching:FetchContract",
    "format": "format:FormatContract",
    "ftl": "drives:FtlContract",
    "gc": "drives:GcContract",
    "joins": "joins:JoinContract",
    "page": "storage:PageContract",
    "page_format": "page_format:PageTraceContract",
    "partitioning": "operators:PartitionContract",
    "placement": "storage:PlacementContract",
    "planners": "fetching:PlannerContract",
    "programs": "operators:ProgramContract",
    "references": "workloads:ReferencesContract",
    "replacement": "replacement:ReplacementContract",
    "replay": "replay:ReplayContract",
    "restart": "extensions:RestartContract",
    "scheduler": "drives:SchedulerContract",
    "source": "storage:SourceContract",
    "transactions": "workloads:TransactionContract",
    "wear": "drives:WearContract",
    "workload": "workloads:WorkloadContract",
}

__all__ = ["CONTRACTS", *(contract.partition(":")[2] for contract in CONTRACTS.values())]


def __getattr__(name: str) -> Any:
    for contract in CONTRACTS.values():
        if contract.endswith(f":{name}"):
            return resolve_name(f"{__name__}.contracts.{contract}")
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
