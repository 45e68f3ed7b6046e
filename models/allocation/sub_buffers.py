"""Division of N-Hash's output buffers, which it fills as rings, into sub-buffers (shin2016, section 3)."""

from flashsim.core.units import KIB

#: shin2016, section 1.3: a sub-buffer, bytes.
SUB_BUFFER = 8 * KIB


def sub_buffer_pages(ring: int, page_size: int, sub_buffer: int = 0) -> int:
    """Pages of a sub-buffer: as many as divide the ring, and are not longer than what is wanted.

    `ring` is pages of an output buffer; the sizes are bytes.  Without a sub-buffer 8 KiB are wanted, but two sub-buffers at least: with one
    there would be one request at a time.

    Examples
    --------
    >>> [sub_buffer_pages(ring, 4096) for ring in (1, 2, 3, 4, 19)], sub_buffer_pages(12, 4096, 16384)
    ([1, 1, 1, 2, 1], 4)
    """
    most = sub_buffer // page_size if sub_buffer else min(SUB_BUFFER // page_size, ring // 2)
    return next(pages for pages in range(max(1, min(most, ring)), 0, -1) if ring % pages == 0)
