"""Pictures of runs show what they are given: bars as high as shares, areas as high as amplifications, one cell a block."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from flashsim.experiments.presentation.plots import svg
from flashsim.experiments.replaying.report import amplification_over_time, block_heat, busy_parts, latencies
from flashsim.ssd.state.drive_state import BlockMap
from tests.commands import Run
from traces.summary.histogram import Histogram

ROOT = Path(__file__).parents[4]


def test_every_nine_of_the_tail_has_the_same_room() -> None:
    times = Histogram()
    times.add(np.repeat([10_000, 100_000, 1_000_000, 10_000_000], [90_000, 9_000, 900, 100]))
    axes = latencies({"read": times, "write": Histogram()}).axes[0]
    (line,) = axes.lines
    assert [tick.get_text() for tick in axes.get_yticklabels()][:5] == ["0 %", "90 %", "99 %", "99.9 %", "99.99 %"]
    assert np.asarray(line.get_ydata()) == pytest.approx([1, 2, 3, np.log10(2 * 100_000)])
    assert np.asarray(line.get_xdata()) == pytest.approx([0.01, 0.1, 1, 10], rel=2e-3)


def test_bars_are_busy_shares_in_one_colour_a_kind() -> None:
    busy = pd.DataFrame({"part": ["die 0", "die 1", "channel 0", "link"], "busy": [0.1, 0.5, 0.25, 1.0]})
    bars = busy_parts(busy).axes[0].patches
    assert [bar.get_height() for bar in bars] == [10, 50, 25, 100]
    assert len({bar.get_facecolor() for bar in bars}) == 3


def test_areas_of_causes_stack_up_to_the_whole() -> None:
    causes = {"host": [1.0, np.nan, 1.0], "gc": [0.5, np.nan, 1.0], "wear": [0.0, np.nan, 0.0]}
    history = pd.DataFrame(
        {"begin": [0, 1e9, 2e9], "time": [1e9, 2e9, 3e9], "write_amplification": [1.5, np.nan, 2.0]}
        | {f"write_amplification_{cause}": values for cause, values in causes.items()}
    )
    axes = amplification_over_time(history).axes[0]
    assert [area.get_label() for area in axes.collections] == ["host", "gc"]
    assert max(path.vertices[:, 1].max() for path in axes.collections[1].get_paths()) == 2.0
    alone = amplification_over_time(history[["begin", "time", "write_amplification"]]).axes[0]
    assert [area.get_label() for area in alone.collections] == ["all causes"]


@pytest.mark.parametrize("count", [7, 1024, 3000])
def test_blocks_are_cells_and_retired_ones_are_blank(count: int) -> None:
    dies = 3
    valid = np.tile(np.arange(count) % 5, (dies, 1))
    retired = np.zeros((dies, count), bool)
    retired[1] = True
    erases = np.full((dies, count), 6)
    figure = block_heat(BlockMap(valid, valid, erases, retired, 4))
    shares, erased = (axes.images[0].get_array() for axes in figure.axes[:2])
    assert shares is not None and erased is not None
    assert shares.shape[0] == dies and shares.shape[1] == (count if count <= 1024 else -(-count // -(-count // 1024)))
    assert shares.mask[1].all() and not shares.mask[0].any() and (erased[0] == 6).all()
    if count <= 1024:
        assert np.array_equal(shares[0].filled(), valid[0] / 4)
    assert svg(figure) == svg(block_heat(BlockMap(valid, valid, erases, retired, 4)))


def test_a_replay_fills_its_folder(flashsim: Run, here: Path) -> None:
    (here / "a.txt").write_text("".join(f"{number * 100_000} 0 {number % 400 * 64} 8 {number % 2}\n" for number in range(2000)))
    assert flashsim("trace replay a.txt --device ocz-core-60gb --out-dir shown").exit_code == 0
    assert {path.name for path in (here / "shown").iterdir()} == {
        "report.html", "operations.csv", "latency.svg", "busy.csv", "busy.svg", "write_amplification.csv", "write_amplification.svg",
        "blocks.svg",
    }  # fmt: skip
    for path in (here / "shown").glob("*.svg"):
        assert ET.parse(path).getroot().tag.endswith("svg")
    assert len(pd.read_csv(here / "shown" / "busy.csv")) == 8 + 4 + 2
    assert flashsim("trace replay a.txt --device toshiba-5400-320gb --out-dir disk").exit_code == 0
    assert not list((here / "disk").glob("*ampl*")) and not (here / "disk" / "blocks.svg").exists()


def test_the_example_of_the_guide_runs(flashsim: Run, here: Path) -> None:
    (here / "a.txt").write_text("".join(f"{number * 100_000} 0 {number % 400 * 64} 8 {number % 2}\n" for number in range(50)))
    assert flashsim("trace convert a.txt bnl.parquet --to parquet").exit_code == 0
    page = (ROOT / "docs" / "how-to" / "read-a-report.md").read_text()
    *_, block = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    names: dict[str, object] = {}
    exec(compile(block, "read-a-report.md", "exec"), names)
    assert names["report"].as_frame()["requests"].sum() == 50  # type: ignore[attr-defined]
