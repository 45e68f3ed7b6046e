"""Parameters of a queueing station: the number of its servers, and their times."""

import math
from dataclasses import dataclass

import numpy as np

from flashsim.core.draws import mix_bits
from flashsim.core.kernel import lean_kernel
from flashsim.core.parameters import count, duration, rate, size, switch
from flashsim.core.request import READ, SECTOR, Integers
from flashsim.core.units import SECONDS

# Entries of the vector that kernels take for the parameters.
_READ, _WRITE, _RATE, _EXPONENTIAL, _SEED = range(5)


@dataclass(frozen=True)
class StationParameters:
    """Servers with given rates behind one queue, first come, first served.

    A command occupies one server for its time of service: `read` or, whatever else it is, `write`, and the time of its bytes at `rate`.
    Exponential times have that mean and are functions of the request's number, its place and `seed`.
    """

    read: int = duration("time of service of a read, without its bytes", least=1)
    write: int = duration("time of service of anything else, without its bytes", least=1)
    capacity: int = size("bytes that the host can address", least=SECTOR, default=1 << 40)
    servers: int = count("commands served at once", most=65535, default=1)
    rate: int = rate("bytes that a server moves a second; 0: in no time", default=0)
    exponential: bool = switch("whether times of service are exponentially distributed", default=False)
    seed: int = count("seed of exponential times", least=0, default=0)

    @property
    def queue_depth(self) -> int:
        """Commands that the station takes before it has served any: what waits, waits at the host."""
        return self.servers

    def vector(self) -> Integers:
        return np.array([self.read, self.write, self.rate, self.exponential, self.seed], np.int64)


@lean_kernel
def service_time(parameters: Integers, request: int, operation: int, offset: int, length: int) -> int:
    """Time in which a command occupies a server, ns, at least 1."""
    mean = parameters[_READ] if operation == READ else parameters[_WRITE]
    if parameters[_RATE] > 0:
        mean += length * SECONDS // parameters[_RATE]
    if parameters[_EXPONENTIAL] == 0:
        return int(mean)
    bits = mix_bits(mix_bits(mix_bits(int(parameters[_SEED])) + int(request)) + int(offset) // SECTOR)
    return max(1, int(-math.log((bits + 1) / 4294967296.0) * mean))
