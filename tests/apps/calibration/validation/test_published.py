"""Presets against published measurements: parts keep what decides, fitted and predicted numbers are apart, and the whole holds."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import pytest

from flashsim.apps.calibration.validation import published
from flashsim.core.units import GB, KIB
from flashsim.device import presets
from flashsim.device.scaling import part_in_use
from flashsim.experiments.judging.claims import Verdict
from flashsim.experiments.runs.jobs import Results, Settings
from models.write_amplification import fifo
from tests.commands import Run
from tests.flashsim.device.test_parts import few_dies
from tests.test_house import ROOT


def test_every_published_number_is_once_fitted_or_predicted() -> None:
    """What a parameter was solved from is fitted; of every claim but the first writes, something is predicted."""
    judgements = [published.judge_runs(claim, Results(Settings(), {})) for claim in published.claims()]
    fitted = {each.claim.id: [cell.name for cell in each.cells if cell.calibrates] for each in judgements}
    assert fitted == {
        "first": [cell.name for cell in judgements[0].cells],
        "steady": ["sk-hynix-pe8110-960gb", "solidigm-p5520-1.92tb"],
        "amplification": ["micron-7450-max-800gb at 745"],
        "tail": [
            *(f"{drive}-960gb at {rate}" for drive in ("sk-hynix-pe8110", "micron-7450-pro") for rate in ("30,000", "70,000")),
        ],
        "cliff": [
            *(f"hp-fx700-2tb at {place}" for place in ("second level", "second cliff", "third level")),
            *(f"corsair-mp600-elite-2tb at {place}" for place in ("first level", "first cliff", "second level")),
        ],
    }
    assert all(each.verdict is Verdict.NOT_ATTEMPTED for each in judgements)
    assert {len(each.cells) for each in judgements} == {3, 4, 6, 10}
    tail = published.judge_runs(published.claims()[3], Results(Settings(), {}), experiments=True)
    assert [cell.variant for cell in tail.cells] == [""] * 6 + ["a buffer of 6 MiB"] * 4 + ["a buffer of 4 MiB"] * 4
    assert not any(cell.calibrates for cell in tail.cells[6:])


def test_write_amplification_of_a_part_is_between_two_theories(monkeypatch: pytest.MonkeyPatch) -> None:
    """Greedy takes long blocks in the order of their writing; pages left half empty, and a block of moved data, are lost to it.

    Theory moves whole victims; what is emptied in slices loses more pages meanwhile.
    """
    whole = few_dies("micron-7450-max-800gb", 8, 100, 264, write_buffer=4 << 20, gc_slicing=False)
    part = part_in_use(whole).flash
    assert part and whole.flash
    alpha, blocks = 1 + whole.flash.effective_overprovisioning, part.good_blocks - part.gc_reserve
    lost = (1 - 1 / blocks) * (1 - part.group / 2 / part.slots_per_block)
    monkeypatch.setattr(presets, "load", lambda name: whole)
    measured = published.steady("few", 1, 0)["amplification"]
    assert fifo(alpha) < measured < fifo(alpha * lost)


def test_a_lone_number_has_no_null_model() -> None:
    judgements = [published.judge_runs(claim, Results(Settings(), {})) for claim in published.claims()]
    rows = [row for row in published.Validation(judgements, Results(Settings(), {})).rows() if row["claim"] == "cliff"]
    assert {row["at"] for row in rows if row["null"] is None} == {"second cliff", "third level"}


def test_the_command_writes_what_it_prints(here: Path, flashsim: Run) -> None:
    result = flashsim("validate ssd --claim amplification --scale 0.02 --json ssd.json --jobs 1")
    assert result.exit_code == 0
    document = json.loads((here / "ssd.json").read_text())
    (claim,) = document["claims"]
    assert claim["id"] == "published/amplification" and claim["fitted_to"] == {
        "flash beyond the capacity": {"steady": ["pe8110", "p5520"], "amplification": ["745"]}
    }
    assert [(row["at"], row["published"], row["rests on"]) for row in document["numbers"]] == [
        ("373", 1.104, "predicted"), ("522", 1.278, "predicted"), ("745", 1.889, "fitted"),
    ]  # fmt: skip
    assert "below scale 1 numbers are not judged" in " ".join(result.stdout.split())
    assert flashsim("validate ssd --scale 0.000001").exit_code == 2
    assert "micron-7450-max-800gb" in result.stdout and "SSD-iq" in result.stdout
    assert flashsim("validate ssd --claim clif").exit_code == flashsim("validate ssd --scale 0").exit_code == 2


def test_the_command_judges_what_it_simulates_at_scale_1(here: Path, flashsim: Run) -> None:
    result = flashsim("validate ssd --claim cliff --json ssd.json --jobs 1")
    assert result.exit_code == 0 and "below scale 1" not in " ".join(result.stdout.split())
    document = json.loads((here / "ssd.json").read_text())
    assert [(claim["id"], claim["verdict"]) for claim in document["claims"]] == [("published/cliff", "differs")]


def test_a_part_has_the_cliff_of_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """It falls to the rate of all bits of a cell where the cache is full: 8 planes program 48 KiB in 2.065 ms."""
    claim, name = published.claims()[4], "corsair-mp600-elite-2tb"
    whole = presets.load(name)
    assert whole.flash is not None
    cache = whole.flash.slc_cache // 8 * 162 // whole.flash.pages_per_block
    few = few_dies(name, 8, whole.flash.good_blocks - 4, 162, slc_cache=cache, write_buffer=1 << 20)
    monkeypatch.setattr(presets, "load", lambda name: few)
    result = published.filling("few", 1, 0) | {"GB": [whole.capacity / GB]}
    levels = [published._cliff(claim, name, f"{level} level", result) for level in ("first", "second")]
    assert levels == pytest.approx([8 * 16 * KIB / 210_000, 8 * 48 * KIB / 2_065_000], rel=0.1)


@pytest.mark.deep
def test_simulated_drives_come_as_near_as_the_documentation_says() -> None:
    """All but a steady state that was measured twice, tails that nothing in the model makes or bounds, and the first of two caches."""
    validation = published.validate([claim.id for claim in published.claims()], Settings(jobs=2, fresh=True))
    verdicts = {each.claim.id: each.verdict for each in validation.judgements}
    assert verdicts == {
        "first": Verdict.FITTED,
        "steady": Verdict.DIFFERS,
        "amplification": Verdict.FITTED,
        "tail": Verdict.DIFFERS,
        "cliff": Verdict.DIFFERS,
    }
    outside = [cell.name for each in validation.judgements for cell in each.cells if not cell.inside]
    tails = [*(f"kioxia-cm7-r-3.84tb at {rate}" for rate in ("30,000", "70,000")), "micron-7450-pro-960gb at 70,000"]
    assert outside == ["micron-7450-pro-960gb", *tails, "hp-fx700-2tb at first level", "hp-fx700-2tb at first cliff"]


def test_tables_of_the_page_are_replaced_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    tables = importlib.import_module("validation_tables")
    rows = [
        {"engine": "spdk", "queue_depth": 4, "measure": measure, "simulated": value, "measured": 2 * value}
        for measure, value in {"iops": 65_000.4, "p50_us": 56.0, "p99_us": 90.0}.items()
    ]
    (table,) = tables.tables({"preset": "a", "rows": rows, "errors": []}).values()
    assert table.splitlines()[-1] == "| 4 | 65,000 / 130,001 | 56 / 112 | 90 / 180 |"
    page = tables.PAGE.read_text()
    changed = tables.replaced(page, "reads", table)
    assert tables.replaced(changed, "reads", table) == changed and table in changed
    assert all(place in changed for place in ("<!-- table: factors -->", "<!-- table: rows -->", "<!-- table: published -->"))
    with pytest.raises(ValueError, match="0 places"):
        tables.replaced(page, "unknown", table)
