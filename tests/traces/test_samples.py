"""Samples that come with the package: small, without names of anybody's machine, and one the requests of the other."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

import traces
from flashsim.apps.caching.sources import of_text
from flashsim.core.errors import UnknownNameError
from flashsim.core.request import FLUSH, WRITE
from tests.commands import Run
from traces.calls.schema import Recording
from traces.file.excerpt import excerpt

FILES = sorted((Path(traces.__file__).parent / "samples").glob("*.parquet"))


def test_samples_are_small_and_name_only_the_shop() -> None:
    assert {each.stem for each in FILES} == {"shop", "shop-blocks"}
    assert sum(each.stat().st_size for each in FILES) < 200_000
    shop = Recording.read(excerpt("sample:shop").path).table
    paths = {path for name in ("path", "other") for path in shop[name].unique().to_pylist() if path}
    assert paths == {"/home/shop", "/home/shop/shop.db", "/home/shop/shop.db-journal"}


def test_the_trace_has_what_the_recording_writes() -> None:
    """300 sales and the begin: the journal is made durable twice and the database once, each with a flush or more."""
    recording, blocks = (
        Counter(operation for batch in excerpt(f"sample:{name}").batches() for operation in batch.column("operation").to_pylist())
        for name in ("shop", "shop-blocks")
    )
    assert recording.keys() == blocks.keys() == {WRITE, FLUSH}
    for operation, count in blocks.items():
        assert count == pytest.approx(recording[operation], rel=0.05), "the host's rules may have changed since"
    assert blocks[FLUSH] >= 3 * 300


def test_a_sample_is_a_trace_of_commands_and_an_unknown_one_is_refused(flashsim: Run) -> None:
    assert flashsim("trace info sample:shop-blocks").exit_code == 0
    assert sum(len(each.pages) for each in of_text("sample:shop-blocks", 4096).batches()) == 5456, "references of caches"
    refused = flashsim("trace info sample:nothing")
    assert refused.exit_code == 2 and refused.output == "flashsim: sample: 'nothing' is unknown; known: shop, shop-blocks\n"
    with pytest.raises(UnknownNameError):
        excerpt("sample:../shop")
