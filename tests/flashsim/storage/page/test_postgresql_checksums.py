"""Checksums of PostgreSQL's pages are those that a real server writes."""

from __future__ import annotations

import numpy as np

from flashsim.storage.page._postgresql import PAGE, PAGE_SIZE, checksums
from tests.postgresql_server import Cluster


def test_checksums_are_the_servers(postgresql: Cluster) -> None:
    postgresql.sql("CREATE TABLE summed (a int, b text); INSERT INTO summed SELECT i, repeat('x', i % 99) FROM generate_series(1, 9999) i")
    path = postgresql.path("summed")
    with postgresql.stopped():
        pages = np.fromfile(path, np.uint8).reshape(-1, PAGE_SIZE)
    written = pages[:, : PAGE.itemsize].copy().view(PAGE)["checksum"][:, 0]
    assert len(pages) > 64 and np.array_equal(checksums(pages), written)
    assert np.array_equal(checksums(pages[70:], 70), written[70:]) and not (checksums(pages[70:]) == written[70:]).all()
