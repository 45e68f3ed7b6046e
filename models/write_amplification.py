"""Write amplification of a page-mapped flash drive under random writes: closed forms and a mean-field model.

Write amplification A is the flash pages programmed over the pages that the host writes.  Reclaiming a block with a share v of valid pages
makes room for a share 1 - v of host pages, so A = 1 / (1 - v) if v is the mean over victims.  Every model is of a large drive in steady
state with one pool of blocks, and of single-page writes.

*How much larger the flash is than the data* is stated in four ways; all functions here take alpha.  With T flash blocks that data may fill
and U blocks' worth of logical pages:

=================  ===================  ====================
alpha              T / U                usable over logical
over-provisioning  (T - U) / U          alpha - 1
spare factor       (T - U) / T          1 - 1 / alpha
rho                U / T                1 / alpha, the utilisation
=================  ===================  ====================

A drive said to have "7 %" has alpha 1.07 by the first convention and 1 / 0.93 = 1.075 by the other, which is 7 % less write amplification.
T leaves out what garbage collection keeps free and the block being filled: they cannot hold invalid pages.

Sources: P. Desnoyers, *Analytic Modeling of SSD Write Performance*, SYSTOR 2012, and *Analytic Models of SSD Write Performance*, ACM TOS
10(2), 2014 (equation numbers of the former); B. Van Houdt, *A Mean Field Model for a Class of Garbage Collection Algorithms in Flash-based
Solid State Drives*, SIGMETRICS 2013; R. Agarwal and M. Marrow, *A Closed-Form Expression for Write Amplification in NAND Flash*,
GLOBECOM Workshops 2010.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq, minimize_scalar
from scipy.special import lambertw

from flashsim.core.errors import InvalidParameterError, check_least


def alpha_of_pages(usable: int, logical: int) -> float:
    """Alpha of usable flash pages over logical ones."""
    if logical < 1:
        raise InvalidParameterError("logical", logical, "there must be at least one page")
    return _alpha(usable / logical)


def alpha_of_overprovisioning(overprovisioning: float) -> float:
    """Alpha of (T - U) / U, above 0.

    Raises InvalidParameterError: it is not above 0.
    """
    if not 0 < overprovisioning < math.inf:
        raise InvalidParameterError("overprovisioning", overprovisioning, "it must be above 0")
    return 1 + overprovisioning


def alpha_of_spare_factor(spare_factor: float) -> float:
    """Alpha of (T - U) / T, between 0 and 1.

    Raises InvalidParameterError: it is not between 0 and 1.
    """
    return 1 / (1 - _share("spare_factor", spare_factor))


def alpha_of_utilisation(rho: float) -> float:
    """Alpha of rho = U / T, between 0 and 1."""
    return 1 / _share("rho", rho)


def overprovisioning_of(alpha: float) -> float:
    return _alpha(alpha) - 1


def spare_factor_of(alpha: float) -> float:
    return 1 - 1 / _alpha(alpha)


def utilisation_of(alpha: float) -> float:
    return 1 / _alpha(alpha)


def fifo(alpha: float) -> float:
    """First in, first out (also called LRU cleaning), uniform writes (Desnoyers, equation 4).

    A = alpha / (alpha + W(-alpha e^-alpha)) with Lambert's W on its principal branch.  The same as the victims' valid share v of
    Menon and Robinson, (v - 1) / ln v = 1 / alpha, and as Xiang and Kurkoski's result for greedy with large blocks.

    Raises InvalidParameterError: alpha is not above 1.

    >>> round(fifo(1.28), 3)
    2.481
    """
    alpha = _alpha(alpha)
    return float(alpha / (alpha + lambertw(-alpha * math.exp(-alpha)).real))


def greedy(alpha: float, pages_per_block: int) -> float:
    """Greedy, uniform writes (Desnoyers, equation 12): fifo(k alpha) / k with k = 1 + 1 / (2 Np).

    Raises InvalidParameterError: alpha is not above 1, or a block has no page.
    """
    k = _greedy_factor(pages_per_block)
    return fifo(k * _alpha(alpha)) / k


def random(alpha: float) -> float:
    """Victims chosen blindly, uniform writes: they hold the mean share rho of valid pages, so A = 1 / (1 - rho).

    Raises InvalidParameterError: alpha is not above 1.
    """
    return 1 / (1 - utilisation_of(alpha))


def agarwal_marrow(alpha: float) -> float:
    """Agarwal and Marrow's estimate for greedy, (1 + OP) / (2 OP): it takes the counts of valid pages as evenly spread."""
    return _alpha(alpha) / (2 * overprovisioning_of(alpha))


def fifo_hot_cold(alpha: float, hot_writes: float, hot_data: float) -> float:
    """First in, first out where a share r of the writes goes to a share f of the data (Desnoyers, equation 14); both mix in all blocks.

    A = 1 + r / (exp((r / f) alpha / A) - 1) + (1 - r) / (exp(((1 - r) / (1 - f)) alpha / A) - 1).

    Raises InvalidParameterError: alpha is not above 1, or a share is not between 0 and 1.
    """
    r, f = _share("hot_writes", hot_writes), _share("hot_data", hot_data)
    return fifo_groups(alpha, (r, 1 - r), (f, 1 - f))


def greedy_hot_cold(alpha: float, hot_writes: float, hot_data: float, pages_per_block: int) -> float:
    """Greedy with hot and cold data mixed in all blocks (Desnoyers, equation 16): fifo_hot_cold(k alpha) / k, k as in `greedy`."""
    k = _greedy_factor(pages_per_block)
    return fifo_hot_cold(k * _alpha(alpha), hot_writes, hot_data) / k


def fifo_groups(alpha: float, writes: Sequence[float], data: Sequence[float]) -> float:
    """First in, first out where group i takes a share r_i of the writes and f_i of the data (equation 14, k groups).

    Their pages are mixed in all blocks.

    A = 1 + sum of r_i e_i / (1 - e_i), e_i = exp(-alpha r_i / (f_i A)) being the share of a group's pages that stay valid until their
    block is reclaimed.

    `alpha` is usable over logical pages.  `writes` and `data` are the groups' shares, shape (k,); each adds up to 1.  A group may take no
    writes: its pages are copied at every turn.
    """
    alpha = _alpha(alpha)
    r, f = np.asarray(writes, float), np.asarray(data, float)
    if r.ndim != 1 or r.shape != f.shape:
        raise InvalidParameterError("writes", r.shape, f"data has shape {f.shape}; both need one share a group")
    for name, shares, least in (("writes", r, 0.0), ("data", f, np.nextafter(0, 1))):
        if not (np.all(shares >= least) and math.isclose(shares.sum(), 1, abs_tol=1e-9)):
            raise InvalidParameterError(
                name, shares.tolist(), "the shares of the groups must not be negative, nor 0 of data, and add up to 1"
            )

    def excess(a: float) -> float:
        written = np.where(r > 0, r, 1)
        copied = np.where(r > 0, written / np.expm1(np.minimum(alpha * written / (f * a), 700)), f * a / alpha)  # the latter as r nears 0
        return float(1 + copied.sum() - a)

    high = 2.0
    while excess(high) > 0:
        high *= 2
    return float(brentq(excess, 1, high, xtol=1e-13, rtol=1e-14))


@dataclass(frozen=True)
class HotAndColdPools:
    """Hot and cold data in blocks of their own: the hot pool's share p of the spare room, and the write amplification."""

    share: float
    hot_alpha: float
    cold_alpha: float
    write_amplification: float


def separate_pools(
    alpha: float, hot_writes: float, hot_data: float, share: float | None = None, cleaning: Callable[[float], float] = fifo
) -> HotAndColdPools:
    """Hot and cold data in two pools (Desnoyers, equations 20 to 22); without `share` the spare room is divided best.

    alpha_h = (p (alpha - 1) + f) / f, alpha_c = ((1 - p)(alpha - 1) + 1 - f) / (1 - f), A = r g(alpha_h) + (1 - r) g(alpha_c), where g is
    the `cleaning` of each pool.

    Raises InvalidParameterError: alpha is not above 1, or a share is not between 0 and 1.

    >>> pools = separate_pools(1.15, hot_writes=0.9, hot_data=0.1)
    >>> round(pools.write_amplification, 2), round(pools.share, 2)
    (1.93, 0.49)
    """
    spare = overprovisioning_of(alpha)
    r, f = _share("hot_writes", hot_writes), _share("hot_data", hot_data)

    def divide(p: float) -> HotAndColdPools:
        hot, cold = (p * spare + f) / f, ((1 - p) * spare + 1 - f) / (1 - f)
        return HotAndColdPools(p, hot, cold, r * cleaning(hot) + (1 - r) * cleaning(cold))

    if share is not None:
        return divide(_share("share", share))
    best = minimize_scalar(lambda p: divide(p).write_amplification, bounds=(0, 1), method="bounded", options={"xatol": 1e-10})
    return divide(float(best.x))


@dataclass(frozen=True)
class MeanField:
    """A mean-field model's steady state."""

    write_amplification: float  #: Flash pages programmed over host pages written.
    blocks: npt.NDArray[np.float64]  #: The share of blocks with 0, 1, ... valid pages, shape (pages of a block + 1,); it adds up to 1.
    victims: npt.NDArray[np.float64]  #: The same of the blocks that are reclaimed.


def d_choices(alpha: float, pages_per_block: int, d: float) -> MeanField:
    """The emptiest of d blocks drawn at random, uniform writes (Van Houdt's mean field); d = 1 is random, and a large d nears greedy.

    With m_i the share of blocks that have i of b pages valid, T_j = m_j + ... + m_b and p_j = T_j^d - T_{j+1}^d the chance that a victim
    has j, the drift of m_i is g ((i + 1) m_{i+1} - i m_i) - p_i + [i = b] with g = sum_j p_j (b - j) / (b rho), and sum i m_i = b rho.
    In steady state the drifts of 0 to i add up to

        g (i + 1) (T_{i+1} - T_{i+2}) = 1 - T_{i+1}^d,

    which is solved downwards from m_b = T_b; m_b is then found such that T_1 + ... + T_b = b rho.  A = b / (b - sum_j j p_j) = 1 / (g rho).

    Raises InvalidParameterError: alpha is not above 1, a block has no page, or d is below 1.

    >>> round(d_choices(1.28, 64, 2).write_amplification, 3)
    3.245
    """
    rho = utilisation_of(alpha)
    b = _pages(pages_per_block)
    check_least(1, d=d)

    def excess(full: float) -> float:
        return float(_tails(full, b, d)[1 : b + 1].sum() - b * rho)

    full = float(brentq(excess, 1e-12, 1 - 1e-12, xtol=1e-15, rtol=1e-14))
    tails = _tails(full, b, d)
    amplification = b / (b - float((tails[1:] ** d).sum()))
    return MeanField(amplification, tails[:-1] - tails[1:], tails[:-1] ** d - tails[1:] ** d)


def _tails(full: float, b: int, d: float) -> npt.NDArray[np.float64]:
    """T_0 to T_{b+1}, given T_b."""
    tails = np.zeros(b + 2)
    tails[0], tails[b] = 1, full
    g = (1 - full**d) / (b * full)
    for j in range(b - 1, 0, -1):
        weight = 1 / (g * j)
        target = tails[j + 1] + weight
        x = 1.0
        while True:  # Newton from above on a convex rising function: it only falls, and stops at rounding
            step = (x + weight * x**d - target) / (1 + weight * d * x ** (d - 1))
            if step <= 1e-16:
                break
            x -= step
        tails[j] = x
    return tails


def _alpha(alpha: float) -> float:
    if not 1 < alpha < math.inf:
        raise InvalidParameterError("alpha", alpha, "it must be above 1: more usable flash pages than logical ones")
    return float(alpha)


def _share(name: str, share: float) -> float:
    if not 0 < share < 1:
        raise InvalidParameterError(name, share, "it must be between 0 and 1")
    return float(share)


def _pages(pages_per_block: int) -> int:
    check_least(1, pages_per_block=pages_per_block)
    return int(pages_per_block)


def _greedy_factor(pages_per_block: int) -> float:
    return 1 + 1 / (2 * _pages(pages_per_block))
