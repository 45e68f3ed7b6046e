"""Drawings of a small drive show its state: a cell a page, a bar a hold."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.patches import Rectangle

from flashsim.apps.watching.flash_drawing import draw_pages, draw_spans
from flashsim.core.errors import InvalidParameterError
from flashsim.core.host_queue import one_command_each
from flashsim.core.request import WRITE, make_requests
from flashsim.core.rng import generator
from flashsim.core.spans import CAUSES, holds
from flashsim.experiments.presentation.plots import svg
from flashsim.ssd.engine.drive import SsdEngine
from flashsim.ssd.lab.drive import LabDrive, lab_parameters, page_states


def used_drive(**changes: int) -> LabDrive:
    drive = LabDrive(**changes)
    drive.write_all(range(drive.pages))
    drive.write_all(generator(1, "drawing").integers(0, drive.pages, 200))
    return drive


def test_every_page_is_a_cell_of_its_state() -> None:
    drive = used_drive()
    drive.begin("write", 0)
    figure = draw_pages(drive, "a drive")
    assert len(figure.axes) == 2
    for pool, axes in enumerate(figure.axes):
        shown = axes.collections[0].get_array()
        states = page_states(drive.state)[32 * pool : 32 * (pool + 1)]
        assert shown is not None and np.array_equal(np.asarray(shown).reshape(8, 32), states.T)
        numbers = {(int(x), int(y)): text.get_text() for text in axes.texts for x, y in (text.get_position(),) if y < 8}
        for page in range(drive.pages):
            block, offset = divmod(int(drive.state.mapping[page]) - 1, 8)
            if block // 32 == pool:
                assert numbers[block % 32, offset] == str(page)
        erases = [text.get_text() for text in axes.texts if text.get_position()[1] > 8]
        assert erases == [str(count) for count in drive.state.blocks.erases[32 * pool : 32 * (pool + 1)]]
        labels = [label.get_text().split("\n")[0] for label in axes.get_xticklabels()]
        assert labels == [str(block) for block in range(32 * pool, 32 * (pool + 1))]
    assert svg(figure) == svg(draw_pages(drive, "a drive"))


def test_larger_drives_are_drawn_without_numbers_and_huge_ones_not_at_all() -> None:
    drive = used_drive(pages_per_block=64)
    assert not draw_pages(drive).axes[0].texts
    with pytest.raises(InvalidParameterError, match="flash pages: 262144"):
        draw_pages(LabDrive(blocks_per_plane=16384))


def test_every_hold_is_a_bar_in_the_row_of_its_part() -> None:
    parameters = lab_parameters()
    engine = SsdEngine(parameters)
    engine.load(0, parameters.capacity)
    pages = generator(2, "drawing").integers(0, parameters.logical_pages, 150)
    requests = make_requests(WRITE, pages * parameters.page_size, parameters.page_size)
    engine.record_spans(True)
    engine.submit(requests, one_command_each(requests), 0)
    engine.advance(every=True)
    spans = holds(engine.spans())
    axes = draw_spans(spans, parameters.dies, parameters.channels).axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["die 0", "die 1", "channel 0", "channel 1", "link", "controller"]
    legend = axes.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == [CAUSES[cause] for cause in np.unique(spans["cause"])] == ["host", "gc"]
    bars = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
    drawn = sorted((round(bar.get_y() + 0.4), round(1000 * bar.get_x()), round(1000 * (bar.get_x() + bar.get_width()))) for bar in bars)
    assert drawn == sorted(zip(spans["server"].tolist(), spans["begin"].tolist(), spans["end"].tolist(), strict=True))
    middle = engine.now // 2
    some = draw_spans(spans, parameters.dies, parameters.channels, middle, middle + 100_000).axes[0]
    assert 0 < len(some.patches) == ((spans["end"] > middle) & (spans["begin"] < middle + 100_000)).sum() < len(spans)
    assert not draw_spans(spans[:0], 2, 2).axes[0].patches
