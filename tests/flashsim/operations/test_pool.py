"""Runs of systems of pools: what is told over time adds up, and parts can be left out."""

from __future__ import annotations

import json
from dataclasses import fields
from inspect import signature
from typing import Any

import numpy as np
import pytest

import flashsim as fs
from flashsim.core.kernel import is_compiled
from flashsim.core.units import KIB, MB, SECONDS
from flashsim.execution.compiled_loop import Striped
from flashsim.experiments.designs import report
from flashsim.experiments.designs.session import DesignRuns, PoolStudy, execute
from flashsim.pools import PoolOptions
from flashsim.pools.devices import PoolDevice, pages_in_a_row
from flashsim.pools.setup import PoolSetup


@pytest.fixture(scope="module")
def done() -> DesignRuns:
    switches = PoolOptions(clients=3, read_ahead=1, expansion=2, dirty_limit=20)
    return execute(
        PoolStudy(
            workload="zipf:pages=400,write-share=0.5,each=4",
            designs=["none", "lc"],
            memory=40 * 512,
            ssd=200 * 512,
            time=SECONDS // 2,
            page_size=512,
            without=["throttle", "expansion"],
            options=switches,
        )
    )


def test_parts_of_the_ssd_are_left_out_where_there_is_one(done: DesignRuns) -> None:
    assert [each.name for each in done.runs] == ["none", "none without expansion", "lc", "lc without throttle", "lc without expansion"]
    systems = {each.name: each.system for each in done.runs}
    assert (systems["lc"].throttle, systems["lc without throttle"].throttle, systems["lc without expansion"].expansion) == (100, 0, 1)
    assert systems["none"].ssd == 0 and systems["lc"].ssd == 200


def test_what_is_told_adds_up(done: DesignRuns) -> None:
    for each, row in zip(done.runs, done.rows(), strict=True):
        series = each.series()
        assert row["transactions_s"] == pytest.approx(np.mean(series["transactions_s"][-20:]))
        assert row["dirty_share"] == pytest.approx(np.mean(series["dirty_share"][-20:]))
        moved = {(told["device"], told["how"]): 0.0 for told in each.traffic()}
        for told in each.traffic():
            moved[told["device"], told["how"]] += told["mb_s"]
        assert moved["disk", "read"] == pytest.approx(row["disk_read_mb_s"])
        assert moved["disk", "written"] == pytest.approx(row["disk_written_mb_s"])
        if each.system.ssd:
            assert moved["SSD", "read"] == pytest.approx(row["ssd_read_mb_s"])
        # each reference is a hit, or one page was read or made for it; what is on its way at the end is not counted as read
        asked = row["hits"] + row["created"] + row["ssd_reads"] + row["disk_reads"]
        assert 0 <= row["references"] - asked <= each.system.clients
    json.dumps(done.as_dict(), allow_nan=False)


def test_states_are_told_of_the_last_interval_too(done: DesignRuns) -> None:
    lazy = next(each for each in done.runs if each.name == "lc")
    used = lazy.series()["used_share"]
    assert min(used[-2:]) > 0 and used == sorted(used)
    assert 0 < lazy.series()["dirty_share"][-1] <= 0.25


def test_devices_are_made_as_texts_say() -> None:
    several = PoolDevice("disk", "3xtoshiba-5400-320gb")
    made = several.make(8 * KIB)
    assert isinstance(made, Striped) and len(made.drives) == 3 and made.stripe == several.stripe
    assert pages_in_a_row([several, PoolDevice("ssd", "rates")], 8 * KIB) == several.stripe // (8 * KIB)
    assert several.capacity <= 3 * 320_100 * MB
    assert PoolDevice("ssd", "rates:read=5").make(8 * KIB).capacity == PoolDevice("ssd", "rates").capacity


def test_pictures_name_their_units_and_tell_lines_apart_without_colour(done: DesignRuns) -> None:
    above, *below = report.ramp_up(done).axes
    assert len({(line.get_marker(), line.get_linestyle()) for line in above.lines}) == len(done.runs)
    assert [axes.get_ylabel() for axes in (above, *below)] == ["transactions/s", "SSD hits (% of misses)", "dirty (% of SSD)"]
    assert below[-1].get_xlabel() == "virtual time (ms)"
    assert all(len(axes.lines) == sum(each.system.ssd > 0 for each in done.runs) for axes in below)
    rates = np.array(done.runs[0].series()["transactions_s"])
    assert np.asarray(above.lines[0].get_ydata())[1:-1] == pytest.approx(np.convolve(rates, np.full(3, 1 / 3), "valid"))
    drawn = report.traffic(done).axes
    for first, axes in zip((0, 1) * len(done.runs), drawn, strict=True):  # a device has one scale
        assert axes.get_ylim() == drawn[first].get_ylim()
        most = max(max(np.asarray(line.get_ydata(), float)) for each in drawn[first::2] for line in each.lines)
        assert axes.get_ylim()[0] == 0 < most <= axes.get_ylim()[1]


def test_what_parts_are_worth_is_drawn_where_some_were_left_out(done: DesignRuns) -> None:
    drawn = report.parts(done)
    assert drawn is not None
    over = [row["over_whole"] for row in done.rows() if row["without"]]
    assert [bar.get_width() for bar in drawn.axes[0].patches] == over and len(over) == 3
    assert report.parts(DesignRuns(done.study, done.pages, done.runs[:1])) is None
    many = DesignRuns(done.study, done.pages, [*done.runs] * 3)
    assert len(report.ramp_up(many).axes[0].lines) == 6  # of so many runs those with all parts


def test_an_option_has_one_name_from_the_command_line_to_the_system() -> None:
    given: dict[str, tuple[Any, Any]] = {
        "clients": (5, 5), "think": ("2us", 2000), "expansion": (4, 4), "expansion_until": ("ssd", "ssd"), "filling": ("30%", 30),
        "throttle": (9, 9), "dirty_limit": ("20%", 20), "read_ahead": (7, 7), "group": (6, 6), "partitions": (3, 3),
        "checkpoint": ("1ms", 1_000_000), "fuzzy": (True, True), "log_bytes": ("300B", 300),
    }  # fmt: skip
    assert given.keys() == {each.name for each in fields(PoolOptions)} & signature(fs.pool).parameters.keys()
    sizes = {"memory": "1MiB", "ssd": "1MiB", "time": "2ms", "log": "rates:read=5000,write=5000"}
    result = fs.pool("zipf:pages=400,each=4", design="lc", jobs=1, **sizes, **{name: value for name, (value, _) in given.items()}).result
    system = result.runs[0].system
    assert {name: getattr(system, name) for name in given} == {name: value for name, (_, value) in given.items()}
    assert all(getattr(PoolOptions(), name) != value for name, (_, value) in given.items())
    setup = result.study.setup("lc")
    assert PoolSetup.of(json.loads(json.dumps(setup.as_dict()))) == setup and setup.options.group == 6


def test_throughput_stands_over_that_without_an_ssd_whatever_ran_first(done: DesignRuns) -> None:
    table = report.runs_table(DesignRuns(done.study, done.pages, done.runs[::-1]))
    over = table["over none"].tolist()
    assert over[-1] == 1.0 and over[0] == pytest.approx(done.rows()[-1]["transactions_s"] / done.rows()[0]["transactions_s"])


def test_tpc_h_tells_its_figures_when_it_has_come_to_its_end() -> None:
    switches = PoolOptions(clients=3, read_ahead=8, think=1000)
    runs = {}
    for seconds in (1, 60):
        asked = PoolStudy(
            workload="tpc-h:scale=0.01", designs=["none"], memory=MB, ssd=0, time=seconds * SECONDS, options=switches, without=[]
        )
        runs[seconds] = execute(asked)
    (row,) = runs[60].rows()
    assert row["QphH"] == pytest.approx((row["power"] * row["throughput"]) ** 0.5)
    assert "QphH" not in runs[1].rows()[0]
    table = report.figures_table(runs[60])
    assert table is not None and list(table.columns) == ["design", "power", "throughput", "QphH"]
    assert report.figures_table(runs[1]) is None


@pytest.mark.skipif(not is_compiled(), reason="takes minutes uncompiled")
def test_formulas_stand_beside_the_runs_that_they_know() -> None:
    done = fs.pool("tpc-c:warehouses=2", design=["none", "dw", "face"], memory="20MB", ssd="140MB", time="18s", jobs=1)
    table, simulated = done.against_formula().set_index("design"), done.summary().set_index("design").transactions_s
    assert table.index.tolist() == ["none", "dw"] and (table.transactions_s == simulated[table.index]).all()
    assert table.formula_throughput.to_numpy() == pytest.approx(simulated[table.index].to_numpy(), rel=0.15)
    assert table.error.to_numpy() == pytest.approx((table.formula_throughput / table.transactions_s - 1).to_numpy())
    assert json.loads(json.dumps(done.as_dict()))["formula"] == done.against_formula().to_dict("records")
    longer = fs.pool("zipf:pages=2000", design="none", memory="4MiB", clients=4, time="1s", checkpoint="100ms")
    assert longer.against_formula().empty and "By formula" not in "".join(map(str, longer.printout()))
