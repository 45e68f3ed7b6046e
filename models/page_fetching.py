"""How many pages must be fetched, at least, so that pairs of pages meet in few frames; and how many pages random tuples lie on.

A page graph has a vertex a page and an edge a pair that must be in memory together once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from scipy.optimize import brentq
from scipy.special import gammaln

from flashsim.core.errors import InvalidParameterError


def least_fetches(pages: int, edges: int, frames: int, largest_degree: int) -> int:
    """A lower bound of the fetches: every page once, and the i-th fetch lets at most min(i - 1, b - 1, D) pairs meet.

    Parameters
    ----------
    pages
        That have an edge.
    frames
        b, at least 2.
    largest_degree
        D, of any page.

    Examples
    --------
    >>> least_fetches(5, 5, 2, 3), least_fetches(6, 9, 3, 3)
    (6, 6)
    """
    _check(pages, edges, frames)
    most = min(frames - 1, largest_degree)
    if edges == 0:
        return pages
    # the first `most` fetches let 0, 1, ..., most - 1 pairs meet, and each further one as many as `most`
    beginning = most * (most - 1) // 2
    triangle = math.ceil((1 + math.sqrt(1 + 8 * edges)) / 2)
    return max(pages, triangle if edges <= beginning else most + -(-(edges - beginning) // most))


def two_frames(edges: int, components: int) -> tuple[int, float]:
    """Least and most fetches of the best plan with 2 frames: e + c and 1.25 e + c, of e edges in c components.

    The least is reached just if the line graph of each component has a Hamiltonian path (Merrett, Kambayashi and Yasuura, VLDB 1981; Cai,
    Chakaravarthy, Kaushik and Naughton, PODS 2001).

    Examples
    --------
    >>> two_frames(9, 1)
    (10, 12.25)
    """
    return edges + components, 1.25 * edges + components


def frames_of_complete(pages: int, others: int) -> int:
    """The least frames with which no page of a complete bipartite graph is fetched twice: the smaller side, and one."""
    return min(pages, others) + 1


def yao(tuples: int, per_page: float, chosen: int) -> float:
    """The expected number of pages that `chosen` different random tuples lie on (Yao, CACM 20(4), 1977).

    Parameters
    ----------
    tuples
        Of the file, `per_page` on each page, in the mean.

    Examples
    --------
    >>> yao(100, 10, 100), round(yao(100, 10, 1), 6)
    (10.0, 1.0)
    """
    if not (0 <= chosen <= tuples and 0 < per_page <= tuples):
        raise InvalidParameterError("chosen", chosen, f"it must lie between 0 and the {tuples} tuples, of which {per_page} are on a page")
    rest = tuples - per_page
    if chosen > rest:
        return tuples / per_page
    missed = gammaln(rest + 1) - gammaln(rest - chosen + 1) - gammaln(tuples + 1) + gammaln(tuples - chosen + 1)
    return float(tuples / per_page * -math.expm1(missed))


def cardenas(pages: float, chosen: float) -> float:
    """The same for tuples drawn independently, which may be the same (Cardenas, CACM 18(5), 1975).

    Examples
    --------
    >>> round(cardenas(10, 1), 6)
    1.0
    """
    return float(pages * -math.expm1(chosen * math.log1p(-1 / pages))) if pages > 1 else min(float(pages), chosen)


def least_recently_used(files: Sequence[tuple[float, float, float]], frames: int, passing: float = 0.0) -> float:
    """The expected fetches if tuples of several files are asked for in no order, and frames hold the pages asked for last.

    A page stays until as many others have been asked for as there are frames, which is about as long for all pages (Che, Tung and Wang,
    IEEE JSAC 20(7), 2002); for one file this is what Mackert and Lohman estimate (ACM TODS 14(3), 1989), with tuples asked for once each.

    Parameters
    ----------
    files
        Of each, its pages, the tuples on a page, and how many tuples are asked for, whichever they are.
    passing
        Pages of others that are asked for once meanwhile, as by a scan.

    Examples
    --------
    >>> round(least_recently_used([(100, 10**4, 10**6)] * 2, 200)), round(least_recently_used([(100, 10, 1000)] * 2, 100))
    (200, 1100)
    """
    shares = [(pages, max(1.0, each, asked / pages), asked) for pages, each, asked in files if pages]

    def distinct(time: float) -> float:
        return time * passing + sum(pages - pages * (1 - time * asked / pages / each) ** each for pages, each, asked in shares)

    if distinct(1) <= frames:
        return distinct(1)
    stays = float(brentq(lambda time: distinct(time) - frames, 0, 1))
    misses = sum(asked * (1 - stays * asked / pages / each) ** (each - 1) for pages, each, asked in shares)
    return frames + (1 - stays) * (passing + misses)


def _check(pages: int, edges: int, frames: int) -> None:
    if pages < 0 or edges < 0:
        raise InvalidParameterError("pages and edges", f"{pages} and {edges}", "they must be at least 0")
    if frames < 2:
        raise InvalidParameterError("frames", frames, "two pages must be in memory together, so at least 2 are needed")
