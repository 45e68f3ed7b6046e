"""Closed networks against mean value analysis by its recursion, a Markov chain, bounds, and the five-minute rule's published figures."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flashsim.core.errors import InvalidParameterError
from flashsim.core.units import KIB
from models.closed_network import Station, equilibrium
from models.five_minute_rule import break_even

DEMANDS = st.lists(st.floats(0.001, 10), min_size=1, max_size=5)


@given(DEMANDS, st.integers(1, 40), st.floats(0, 20))
def test_single_servers_are_mean_value_analysis(demands: list[float], clients: int, think: float) -> None:
    queues = np.zeros(len(demands))
    throughput = 0.0
    for number in range(1, clients + 1):
        times = np.array(demands) * (1 + queues)
        throughput = number / (think + times.sum())
        queues = throughput * times
    found = equilibrium([Station(each) for each in demands], clients, think)
    assert found.throughput == pytest.approx(throughput, rel=1e-9)
    assert found.queues == pytest.approx(queues.tolist(), rel=1e-6, abs=1e-9)


@given(st.lists(st.tuples(st.floats(0.1, 5), st.integers(1, 4)), min_size=2, max_size=3), st.integers(1, 5))
def test_several_servers_are_a_markov_chain(stations: list[tuple[float, int]], clients: int) -> None:
    """Clients go round the stations in turn: the chain's balance equations are solved."""
    states = [each for each in product(range(clients + 1), repeat=len(stations)) if sum(each) == clients]
    place = {each: number for number, each in enumerate(states)}
    rates = np.zeros((len(states), len(states)))
    for state in states:
        for number, (demand, servers) in enumerate(stations):
            if state[number]:
                after = list(state)
                after[number] -= 1
                after[(number + 1) % len(stations)] += 1
                rates[place[state], place[tuple(after)]] += min(state[number], servers) / demand
    balance = (rates - np.diag(rates.sum(1))).T
    balance[-1] = 1
    shares = np.linalg.solve(balance, np.eye(len(states))[-1])
    throughput = sum(share * min(state[0], stations[0][1]) / stations[0][0] for state, share in zip(states, shares, strict=True))
    assert equilibrium([Station(*each) for each in stations], clients).throughput == pytest.approx(throughput, rel=1e-9)


@given(DEMANDS, st.integers(1, 300), st.floats(0, 20))
def test_laws_hold(demands: list[float], clients: int, think: float) -> None:
    found = equilibrium([Station(each) for each in demands], clients, think)
    assert sum(found.queues) + found.throughput * think == pytest.approx(clients)  # Little
    assert found.throughput <= 1 / max(demands) * (1 + 1e-12)
    assert found.throughput <= clients / (sum(demands) + think) * (1 + 1e-12)


@pytest.mark.parametrize("clients", [1, 175, 300, 3000])
def test_clients_that_all_think_are_counted(clients: int) -> None:
    found = equilibrium([Station(0.001)], clients, think=20.0)
    assert sum(found.queues) + found.throughput * 20 == pytest.approx(clients)
    assert found.throughput == pytest.approx(clients / 20.001, rel=0.01)


@pytest.mark.parametrize(
    ("page", "accesses", "device", "memory", "seconds"),
    [
        (KIB, 15, 15000, 5000, 204.8),
        (8 * KIB, 64, 2000, 15, 266.7),
        (4 * KIB, 83, 80, 0.047, 5250),
        (4 * KIB, 6200, 999, 0.047, 878),
        (4 * KIB, 6200, 400, 0.047, 351),
        (4 * KIB, 83, 80, 0.03125, 7896),
    ],
)
def test_published_intervals(page: int, accesses: float, device: float, memory: float, seconds: float) -> None:
    assert break_even(page, accesses, device, memory) == pytest.approx(seconds, rel=0.003)


def test_what_cannot_be_is_refused() -> None:
    for wrong in (lambda: equilibrium([], 1), lambda: equilibrium([Station(1)], 0), lambda: Station(-1), lambda: Station(1, 0),
                  lambda: break_even(0, 1, 1, 1), lambda: equilibrium([Station(1)], 1, -1)):  # fmt: skip
        with pytest.raises(InvalidParameterError):
            wrong()
