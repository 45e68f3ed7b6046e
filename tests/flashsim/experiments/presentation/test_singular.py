"""Sentences that count one thing."""

from __future__ import annotations

from flashsim.experiments.presentation.terminal import singular
from tests.cases import with_each


@with_each(
    ("text", "shown"),
    [
        ("power cut after 1 calls, 1 outcomes; 1 of 1 images fail.", "power cut after 1 call, 1 outcome; 1 of 1 image fails."),
        ("1 misses, 1 fetches, 1 processes, 1 queries", "1 miss, 1 fetch, 1 process, 1 query"),
        ("1 requests were late, 1 rows are left", "1 request was late, 1 row is left"),
        (
            "21 calls, 1,001 rows, 0.1 pages, 1.1 requests, 1 requests/s, x-1 files",
            "21 calls, 1,001 rows, 0.1 pages, 1.1 requests, 1 requests/s, x-1 files",
        ),
        ("cannot read data 1 pages.csv and 1 files/a, at 1 times, 1 us", "cannot read data 1 pages.csv and 1 files/a, at 1 times, 1 us"),
    ],
)
def test_one_of_something_is_no_plural(text: str, shown: str) -> None:
    assert singular(text) == shown
