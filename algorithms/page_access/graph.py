"""The page graph: pages as vertices, and an edge for every two pages that must be in memory together once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from flashsim.core.errors import InvalidParameterError, SchemaError

if TYPE_CHECKING:
    import networkx
    import pandas as pd

Pages = npt.NDArray[np.int32]

NEIGHBOUR, EDGE = range(2)  #: Columns of `PageGraph.adjacency`.
_MOST_EDGES = (1 << 30) - 1  #: Ends of edges are counted in 32 bits.


@dataclass(frozen=True, eq=False)
class PageGraph:
    """Pages and the pairs of them that must meet (a join graph, if the pairs are those of a join index).

    Make one by `of`, `from_csr`, `from_frame` or `from_networkx`.
    """

    #: The two pages of each edge, int32, shape (edges,); no pair stands twice, first < second, and edges ascend.
    first: Pages
    second: Pages
    results: npt.NDArray[np.int64]  #: What each edge is worth, such as the tuples that it joins: int64, shape (edges,).
    pages: int  #: How many pages there are.
    names: Sequence[Any] = ()  #: What each page is called, if that is not its number.

    @classmethod
    def of(
        cls,
        first: npt.ArrayLike,
        second: npt.ArrayLike,
        pages: int | None = None,
        results: npt.ArrayLike | None = None,
        names: Sequence[Any] = (),
    ) -> PageGraph:
        """A graph from the two ends of its edges, in any order; pairs that stand several times are one edge.

        `pages`: how many there are, if the last ones may have no edge. `results`: what each edge is worth, at least 0, shape (edges,); 1
        without it. `names`: what each page is called, if that is not its number.

        >>> graph = PageGraph.of([0, 0, 0, 1, 1], [2, 3, 4, 2, 4])
        >>> graph
        PageGraph(5 pages, 5 edges)
        >>> graph.degrees.tolist()
        [3, 2, 2, 1, 2]
        """
        ends = [_whole("edges", each) for each in (first, second)]
        worth = np.ones(len(ends[0]), np.int32) if results is None else _whole("results", results).astype(np.int64)
        if not len(ends[0]) == len(ends[1]) == len(worth):
            raise InvalidParameterError(
                "edges", f"{len(ends[0])} and {len(ends[1])} ends, {len(worth)} results", "their numbers must agree"
            )
        if len(worth) > _MOST_EDGES:
            raise InvalidParameterError("edges", len(worth), f"at most {_MOST_EDGES} can be counted")
        for what, least in (("edges", min(int(each.min(initial=0)) for each in ends)), ("results", int(worth.min(initial=0)))):
            if least < 0:
                raise InvalidParameterError(what, least, "pages, and what their edges are worth, must be at least 0")
        low, high = np.minimum(*ends), np.maximum(*ends)
        last = int(high.max(initial=-1))
        count = last + 1 if pages is None else pages
        if not last < count <= _MOST_EDGES:
            raise InvalidParameterError(
                "pages", count, f"it must be above {last}, the last page that has an edge, and at most {_MOST_EDGES}"
            )
        if (loops := np.flatnonzero(low == high)).size:
            page = names[int(low[loops[0]])] if names else low[loops[0]]
            raise InvalidParameterError("edges", f"({page}, {page})", "a page cannot be paired with itself (a self-loop)")
        low, high = low.astype(np.int32, copy=False), high.astype(np.int32, copy=False)
        return cls(*_each_once(low, high, worth, count), count, names)

    @classmethod
    def from_csr(cls, offsets: npt.ArrayLike, neighbours: npt.ArrayLike, results: npt.ArrayLike | None = None) -> PageGraph:
        """A graph from compressed rows: ``neighbours[offsets[p]:offsets[p + 1]]`` are those of page p, `results` their worths.

        An edge stands in the row of one of its pages, or in those of both, where that of the lower page counts.

        >>> PageGraph.from_csr([0, 2, 3, 4], [1, 2, 0, 0])
        PageGraph(3 pages, 2 edges)
        """
        begins, others = _whole("offsets", offsets), _whole("neighbours", neighbours)
        if not len(begins) or begins[0] != 0 or begins[-1] != len(others) or np.any(np.diff(begins) < 0):
            raise InvalidParameterError("offsets", begins.tolist()[:3], f"they must ascend from 0 to the {len(others)} neighbours")
        pages = len(begins) - 1
        rows = np.repeat(np.arange(pages), np.diff(begins))
        pairs = np.minimum(rows, others) * pages + np.maximum(rows, others)
        is_edge = (rows < others) | ~np.isin(pairs, pairs[rows < others])
        worth = np.ones(len(others), np.int64) if results is None else _whole("results", results)
        if len(worth) != len(others):
            raise InvalidParameterError("results", len(worth), f"there must be one for each of the {len(others)} neighbours")
        return cls.of(rows[is_edge], others[is_edge], pages, worth[is_edge])

    @classmethod
    def from_frame(cls, frame: pd.DataFrame, results: str = "") -> PageGraph:
        """A graph from a pandas edge list: the first two columns are the ends, of any type; `results` names a column of worths."""
        import pandas as pd

        if frame.shape[1] < 2:
            raise SchemaError("edge list: it needs two columns, the ends of each edge")
        if results and results not in frame:
            raise SchemaError(f"edge list: there is no column '{results}'")
        ends = pd.concat([frame.iloc[:, 0], frame.iloc[:, 1]], ignore_index=True)
        if ends.isna().any():
            raise SchemaError("edge list: an end is missing")
        codes, names = pd.factorize(ends, sort=ends.map(type).nunique() == 1)
        worth = frame[results].to_numpy() if results else None
        return cls.of(codes[: len(frame)], codes[len(frame) :], len(names), worth, list(names))

    @classmethod
    def from_networkx(cls, graph: networkx.Graph[Any], results: str = "") -> PageGraph:
        """A graph of NetworkX; `results` names an attribute of edges that says what each is worth."""
        numbers = {name: number for number, name in enumerate(graph)}
        ends = np.array([(numbers[u], numbers[v]) for u, v in graph.edges()], np.int64).reshape(-1, 2)
        worth = [attributes.get(results, 1) for _, _, attributes in graph.edges(data=True)] if results else None
        return cls.of(ends[:, 0], ends[:, 1], len(numbers), worth, list(numbers))

    def to_networkx(self) -> networkx.Graph[Any]:
        """The graph in NetworkX, with each edge's worth as ``results``."""
        import networkx

        graph: networkx.Graph[Any] = networkx.Graph()
        graph.add_nodes_from(self.names or range(self.pages))
        for u, v, worth in zip(self.first.tolist(), self.second.tolist(), self.results.tolist(), strict=True):
            graph.add_edge(self.name(u), self.name(v), results=worth)
        return graph

    def name(self, page: int) -> Any:
        return self.names[page] if self.names else page

    @cached_property
    def offsets(self) -> Pages:
        """Begin of each page's edges in `adjacency` and in `neighbours`: int32, shape (pages + 1,)."""
        begins = np.searchsorted(self.first, np.arange(self.pages + 1, dtype=np.int32))
        begins[1:] += np.cumsum(np.bincount(self.second, minlength=self.pages))
        return begins.astype(np.int32)

    @cached_property
    def adjacency(self) -> Pages:
        """The edges by pages: ``adjacency[offsets[p]:offsets[p + 1]]`` are the neighbours of page p and the edges to them.

        Those of which p is the first page come first; int32, shape (2 edges, 2).
        """
        table = np.empty((2 * self.edges, 2), np.int32)
        self._lay_by_pages(np.arange(self.edges, dtype=np.int32), table[:, EDGE], table[:, NEIGHBOUR])
        return table

    def neighbours(self) -> Pages:
        """Only the first column of `adjacency`, for the caller to change."""
        column = np.empty(2 * self.edges, np.int32)
        self._lay_by_pages(np.zeros(self.edges, np.int8), np.empty(2 * self.edges, np.int8), column)
        return column

    def _lay_by_pages(self, values: npt.NDArray[Any], by_page: npt.NDArray[Any], neighbours: Pages) -> None:
        """Copy a value an edge, and each edge's other page, to where both of its pages have their edges."""
        begins = np.searchsorted(self.first, np.arange(self.pages + 1, dtype=np.int32)).astype(np.int32)
        from scipy.sparse import csr_array  # which every join would wait for

        turned = csr_array((values, self.second, begins), (self.pages, self.pages)).tocsc()
        own = np.arange(self.edges, dtype=np.int32)
        own += turned.indptr[self.first]
        by_page[own], neighbours[own] = values, self.second
        own = np.arange(self.edges, dtype=np.int32)
        own += np.repeat(begins[1:], np.diff(turned.indptr))
        by_page[own], neighbours[own] = turned.data, turned.indices

    @property
    def edges(self) -> int:
        return len(self.first)

    @property
    def degrees(self) -> Pages:
        """Number of pages that each page must meet, shape (pages,)."""
        return np.diff(self.offsets)

    @property
    def needed_pages(self) -> int:
        """Pages that have an edge: each is fetched at least once."""
        return int(np.count_nonzero(self.degrees))

    def __repr__(self) -> str:
        return f"PageGraph({self.pages} pages, {self.edges} edges)"


def _whole(what: str, values: npt.ArrayLike) -> npt.NDArray[np.signedinteger[Any]]:
    """Whole numbers, which may come as such floats as 2.0."""
    array = np.asarray(values)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iuf"):
        raise InvalidParameterError(what, f"{array.dtype} of shape {array.shape}", "they must be a list of whole numbers")
    if array.dtype.kind == "f" and (broken := np.flatnonzero(array != np.rint(array))).size:
        raise InvalidParameterError(what, array[broken[0]], "they must be a list of whole numbers")
    if array.size and array.max() >= 1 << 62:
        raise InvalidParameterError(what, array.max(), "numbers must be below 2^62")
    return array if array.dtype.kind == "i" else array.astype(np.int64)


def _each_once(low: Pages, high: Pages, worth: npt.NDArray[Any], pages: int) -> tuple[Pages, Pages, npt.NDArray[np.int64]]:
    """Edges in order, each once, and what they are worth together: by counting, since there are few pages and many edges."""
    from scipy.sparse import coo_array

    rows = coo_array((worth, (low, high)), (pages, pages)).tocsr()
    rows.sum_duplicates()
    first = np.repeat(np.arange(pages, dtype=np.int32), np.diff(rows.indptr))
    if worth.dtype == np.int32 and rows.nnz == len(worth):
        return first, rows.indices, np.broadcast_to(np.int64(1), rows.nnz)
    return first, rows.indices, rows.data.astype(np.int64)
