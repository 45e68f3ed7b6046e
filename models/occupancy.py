"""Valid pages of the closed blocks of a page-mapped drive in steady state, under uniform random writes of single pages.

Alpha is usable over logical pages (see `models.write_amplification`), rho = 1 / alpha; a block has b pages.  All blocks outside the reserve
are closed ones, so their mean is b rho whatever the policy.
"""

import math

import numpy as np
import numpy.typing as npt

from flashsim.core.errors import InvalidParameterError, check_least
from models.write_amplification import MeanField, d_choices, fifo, utilisation_of

Shares = npt.NDArray[np.float64]

#: Into how many ages the blocks of FIFO are told apart: the counts of one age vary more than those of its neighbours differ.
AGES = 64


def occupancy(gc: str, alpha: float, pages_per_block: int, choices: int = 2) -> Shares:
    """The share of closed blocks with 0, 1, ... valid pages, under the garbage collection policy `gc`.

    `gc`: ``greedy``, ``random``, ``d-choices`` or ``fifo``.  For any other, such as ``cost-benefit``, greedy's: a place to start from, with
    the right mean. `alpha`: usable over logical pages. `choices`: blocks that d-choices draws.

    Returns shape (pages_per_block + 1,); for ``fifo`` (AGES, pages_per_block + 1), from the blocks closed longest ago to the newest.  Each
    row adds up to 1.  Raises InvalidParameterError: alpha is not above 1, or a block has no page.

    >>> round(float(occupancy("greedy", 1.25, 64) @ range(65)), 6)
    51.2
    """
    if gc == "fifo":
        return fifo_by_age(alpha, pages_per_block)
    if gc in ("random", "d-choices"):
        shares: Shares = np.maximum(d_choices(alpha, pages_per_block, 1 if gc == "random" else choices).blocks, 0)  # 0 less rounding
        return shares
    return greedy_mean_field(alpha, pages_per_block).blocks


def greedy_mean_field(alpha: float, pages_per_block: int) -> MeanField:
    """Greedy as the limit of ever more choices (Van Houdt's mean field; `models.write_amplification.d_choices` has the drifts).

    No block has fewer than j - 1 valid pages, where j is the count of most victims.  Above j the tails T_{i+1} are below 1, their powers
    vanish, and the drifts add up to m_i = 1 / (g i); the rest of the blocks has j.  That j m_j g of the victims, at most all, lose one more
    page and are taken with j - 1 selects j.  With H the harmonic numbers,

        g = (b - j - j (H_b - H_j)) / (b rho - j),  m_j = 1 - (H_b - H_j) / g,  A = 1 / (g rho).

    >>> round(float(greedy_mean_field(1.28, 64).write_amplification), 3)
    2.403
    """
    rho, b = utilisation_of(alpha), pages_per_block
    check_least(1, pages_per_block=b)
    harmonic = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, b + 1))])
    for j in range(math.ceil(b * rho) - 1, -1, -1):
        above = harmonic[b] - harmonic[j]
        g = (b - j - j * above) / (b * rho - j)
        here = 1 - above / g
        if here >= 0 and g * j * here <= 1:
            break
    blocks, victims = np.zeros(b + 1), np.zeros(b + 1)
    blocks[j + 1 :] = 1 / (g * np.arange(j + 1, b + 1))
    blocks[j] = here
    victims[j] = 1 - g * j * here
    victims[max(j - 1, 0)] += g * j * here
    return MeanField(1 / (g * rho), blocks, victims)


def fifo_by_age(alpha: float, pages_per_block: int, ages: int = AGES) -> Shares:
    """First in, first out: a page of a block whose age is a share x of the oldest's is still valid with chance exp(-alpha x / A).

    A is that of `models.write_amplification.fifo` (Desnoyers, SYSTOR 2012, equation 4), so that the mean over x is rho.  The pages of a
    block are independent, so each age has a binomial distribution.

    Returns shape (ages, pages_per_block + 1): blocks from the oldest to the newest, each row the mean over its ages.
    """
    from scipy.stats import binom  # it takes a second to load, for which every command would wait

    if pages_per_block < 1 or ages < 1:
        raise InvalidParameterError("pages_per_block, ages", (pages_per_block, ages), "both must be at least 1")
    decay = alpha / fifo(alpha)
    edges = np.exp(-decay * np.arange(ages, -1, -1) / ages)
    valid = np.diff(edges) * ages / decay  # the mean of the chance over each age
    return np.asarray(binom.pmf(np.arange(pages_per_block + 1), pages_per_block, valid[:, None]))
