"""Closed queueing networks: what clients that wait for each of their requests get of stations that serve them.

Clients are alike, think for a while, and visit stations of a network of product form: any service time where they think, exponential times
where they queue, first come, first served.  The normalising constant is convolved station by station (Buzen, "Computational algorithms for
closed queueing networks with exponential servers", CACM 16(9), 1973); throughput and queues are those of exact mean value analysis (Reiser
and Lavenberg, JACM 27(2), 1980), and stations of several servers need no recursion of their own.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from flashsim.core.errors import InvalidParameterError, check_least

Reals = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Station:
    """Servers behind one queue."""

    demand: float  #: Seconds of service that each round of a client asks of it: visits times the mean time of service.
    servers: int = 1  #: How many are served at once.

    def __post_init__(self) -> None:
        if not 0 <= self.demand < float("inf"):
            raise InvalidParameterError("demand", self.demand, "it is a number of seconds from 0 on")
        check_least(1, servers=self.servers)

    def weights(self, clients: int, scale: float) -> Reals:
        """Unnormalised probabilities of 0, 1, ... clients here, demands being multiples of `scale`."""
        return _products(self.demand / scale / np.minimum(np.arange(1, clients + 1), self.servers))


@dataclass(frozen=True)
class Equilibrium:
    """Steady state of a network."""

    throughput: float  #: Rounds of all clients a second.
    response: float  #: Seconds of a round without thinking.
    queues: tuple[float, ...]  #: Mean clients at each station, those in service included.
    utilisations: tuple[float, ...]  #: Mean share of each station's servers that is busy.


def equilibrium(stations: Sequence[Station], clients: int, think: float = 0.0) -> Equilibrium:
    """Throughput and queues of a closed network.

    `stations`: in any order; `clients`: how many go round; `think`: seconds that a client thinks in each round.

    >>> both = equilibrium([Station(0.010, servers=2), Station(0.002)], clients=4)
    >>> round(both.throughput, 1), [round(each, 2) for each in both.utilisations]
    (194.5, [0.97, 0.39])
    """
    if clients < 1:
        raise InvalidParameterError("clients", clients, "there must be at least one")
    if not 0 <= think < float("inf"):
        raise InvalidParameterError("think", think, "it is a number of seconds from 0 on")
    # The least time between rounds: with demands as its multiples no constant underflows, however many clients think.
    scale = max([(think + sum(each.demand for each in stations)) / clients, *(each.demand / each.servers for each in stations)])
    if scale == 0:
        raise InvalidParameterError("demand", 0, "a round takes no time at all")
    weights = [each.weights(clients, scale) for each in stations]
    thinking = _products(think / scale / np.arange(1, clients + 1))
    constant = _convolve([thinking, *weights], clients)
    throughput = constant[clients - 1] / constant[clients] / scale
    queues, utilisations = [], []
    for number, each in enumerate(stations):
        others = _convolve([thinking, *weights[:number], *weights[number + 1 :]], clients)
        shares = weights[number] * others[::-1] / constant[clients]
        queues.append(float(shares @ np.arange(clients + 1)))
        utilisations.append(float(throughput * each.demand / each.servers))
    return Equilibrium(float(throughput), clients / throughput - think, tuple(queues), tuple(utilisations))


def _products(factors: Reals) -> Reals:
    """Products of the first 0, 1, ... factors, over the largest of them."""
    with np.errstate(divide="ignore"):
        logarithms = np.concatenate([[0.0], np.cumsum(np.log(factors))])
    return np.exp(logarithms - logarithms.max())


def _convolve(weights: Sequence[Reals], clients: int) -> Reals:
    """Normalising constants of 0, 1, ... clients."""
    constant = np.zeros(clients + 1)
    constant[0] = 1.0
    for each in weights:
        constant = np.convolve(constant, each)[: clients + 1]
    return constant
