"""Parts of drives in use: rates and latencies of the whole, on drives that are small enough to run whole."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from flashsim.core.errors import RefusedError
from flashsim.core.preset_files import as_toml
from flashsim.device import presets
from flashsim.device.presets import Preset
from flashsim.device.scaling import part_in_use
from flashsim.studies.calibration.data_sheet import document_of
from flashsim.studies.validation import published, under_load

#: A drive of few dies by its preset, dies, blocks a plane, pages a block, share in use and other changes: the flash of one collects, the
#: controller of one binds, and one has small blocks and a slow link.
DRIVES: dict[str, tuple[str, int, int, int, float, dict[str, Any]]] = {
    "flash": ("micron-7450-pro-960gb", 8, 120, 264, 1.0, {"write_buffer": 4 << 20}),
    "controller": ("kioxia-cm7-r-3.84tb", 8, 100, 264, 0.4, {"write_buffer": 4 << 20, "write_latency": 1_830_270}),
    "link": ("micron-7450-max-800gb", 8, 100, 132, 0.4, {"write_buffer": 1 << 20, "link_write_rate": 60_000_000}),
}


def drive(kind: str) -> Preset:
    name, dies, blocks, pages, share, changes = DRIVES[kind]
    whole = presets.load(name)
    assert whole.flash is not None
    units = dies * blocks * pages * whole.flash.units
    flash = replace(
        whole.flash, channels=2, packages_per_channel=1, dies_per_package=dies // 2, blocks_per_plane=blocks + whole.flash.gc_reserve,
        pages_per_block=pages, capacity=int(share * units / (1 + whole.flash.effective_overprovisioning)) * whole.flash.unit_size, **changes,
    )  # fmt: skip
    return replace(whole, name=kind, parameters=flash)


def play(kind: str, folder: Path, monkeypatch: pytest.MonkeyPatch, whole: bool, samples: int, seed: int = 0) -> dict[str, float]:
    """First and steady random writes, and what is shown under an open load of half of the steady rate, of a part or the whole."""
    path = folder / f"{kind}.toml"
    path.write_text(as_toml(document_of(drive(kind)), [kind]))
    for study in (published, under_load):
        monkeypatch.setattr(study, "part_in_use", (lambda preset, larger: preset) if whole else part_in_use)
    monkeypatch.setattr(under_load, "SAMPLES", samples)
    under_load._in_use.cache_clear()
    steady = published.steady(str(path), 1, seed)
    load = {"used_gib": 1e6, "background_per_s": {"flash": 5000, "controller": 15_000, "link": 5000}[kind], "probe_per_s": 1000}
    shown = under_load.play(str(path), load, 1, seed, {})
    return {"first": published.first(str(path), 1, seed)["kIOPS"], "steady": steady["kIOPS"], **shown}


@pytest.mark.parametrize("kind", DRIVES)
def test_a_part_is_smaller_and_otherwise_the_whole(kind: str) -> None:
    whole, part = drive(kind).flash, part_in_use(drive(kind)).flash
    assert whole and part and part.usable_pages < whole.usable_pages / 3
    same = {"blocks_per_plane": whole.blocks_per_plane, "capacity": whole.capacity}
    assert replace(part, **same) == whole
    assert 0 <= part.effective_overprovisioning - whole.effective_overprovisioning < 0.06 * (1 + whole.effective_overprovisioning)
    assert part_in_use(drive(kind), 100) == drive(kind)


def test_parts_of_all_presets_can_be_made() -> None:
    """Of drives that map pages, merge blocks, have a cache or zones; an array and a disk have none."""
    for name in presets.names(zoned=True):
        preset = presets.load(name)
        if preset.flash is None or preset.array is not None:
            with pytest.raises(RefusedError, match=name):
                part_in_use(preset)
        else:
            part = part_in_use(preset).flash
            assert part and part.pools == preset.flash.pools and part.slots_per_block == preset.flash.slots_per_block
