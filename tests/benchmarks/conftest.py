"""Prints, after the benchmarks, how many requests a second engine and specification serve."""

from __future__ import annotations

import pytest

#: Rows of the table: workload, requests a second of the engine and of the specification, the smallest, median and largest ratio.
RATES: list[tuple[str, float, float, tuple[float, float, float]]] = []


@pytest.fixture(scope="session")
def rates() -> list[tuple[str, float, float, tuple[float, float, float]]]:
    """Where a benchmark notes what it measured."""
    return RATES


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the table."""
    if not RATES:
        return
    terminalreporter.section("requests a second of simulated drives, on one core (medians)")
    terminalreporter.write_line(f"{'workload':44}{'engine':>12}{'specification':>15}{'ratio':>8}   (least .. most)")
    for workload, engine, specification, (least, median, most) in RATES:
        terminalreporter.write_line(f"{workload:44}{engine:12,.0f}{specification:15,.0f}{median:8.0f}   ({least:.0f} .. {most:.0f})")
