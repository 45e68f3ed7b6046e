"""The CPU prices of the machine that this runs on: a preset for ``--cpu``, and what is shown of how they were measured."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.calibration.cpu_kernel import kernel_prices
from experiments.calibration.cpu_user import Price, user_prices
from experiments.presentation.tables import Table
from flashsim.core.compiling import cores as available_cores
from flashsim.core.protocols import Progress
from flashsim.execution.cpu import DEFAULT, KINDS, CpuModel, mean_price
from flashsim.execution.requests import HOST, Work

_COMMENTS = (
    "Measured on one machine by flashsim device calibrate --cpu: its own operations on tuples, and requests to a file.",
    "The kernel's prices are those of that file's device, for either kind.",
)


@dataclass(frozen=True)
class CpuPrices:
    """Every price of this machine."""

    name: str
    prices: Sequence[Price]

    def model(self) -> CpuModel:
        value = {price.name: float(f"{price.value:.4g}") for price in self.prices}
        source = {price.name: f"measured: {price.source}; spread {price.spread:.1%}" for price in self.prices}
        parts = tuple(part for part in ("per_request", "per_byte", "per_call") if part in value)
        sources = {f"user.{kind}": source[kind] for kind in Work}
        sources |= {f"kernel.{kind}.{part}": source[part] for kind in KINDS for part in parts}
        sources[f"user.{DEFAULT}"] = "measured: the geometric mean of the prices a tuple"
        kernel: dict[str, dict[str, float]] = {part: dict.fromkeys(KINDS, value[part]) for part in parts}
        user: dict[str, float] = {kind: value[kind] for kind in Work}
        cores = {HOST: available_cores()}
        priced = user | {DEFAULT: mean_price(user)}
        per_call = kernel.get("per_call", {})
        return CpuModel(self.name, priced, kernel["per_request"], kernel["per_byte"], sources, cores, per_call=per_call)

    def text(self) -> str:
        return self.model().as_toml(_COMMENTS)

    def table(self) -> Table:
        columns = {"price": "name", "ns": "value", "spread": ("spread", "{:.1%}".format), "source": "source"}
        return Table.of(map(vars, self.prices), columns, digits=3)

    def as_dict(self) -> dict[str, Any]:
        told = {price.name: {"nanoseconds": price.value, "spread": price.spread, "source": price.source} for price in self.prices}
        return {"name": self.name, "prices": told}


def measure(name: str, folder: Path, *, duration: int, seed: int = 0, progress: Progress | None = None) -> CpuPrices:
    """Measure every price of this machine.

    Parameters
    ----------
    name
        Of the preset.
    folder
        Where a temporary file of 16 MiB is made; it has no name, so nothing is left of it whatever happens.
    duration
        About how long to measure, ns: half of it user prices, half the kernel's.
    seed
        Of the tuples.
    """
    kernel = kernel_prices(folder, duration // 2, progress)  # first, so that a folder that cannot be written is told at once
    return CpuPrices(name, [*user_prices(duration // 2, seed, progress), *kernel])
