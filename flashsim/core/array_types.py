"""Numba's types of the arrays that kernels take, for signatures that are compiled beforehand."""

import numpy as np
from numba import typeof, types

from flashsim.core.request import COMMAND, COMPLETION, REQUEST

VECTOR = types.Array(types.int64, 1, "C")
MATRIX = types.Array(types.int64, 2, "C")
REQUESTS, COMMANDS, COMPLETIONS = (typeof(np.empty(0, dtype)) for dtype in (REQUEST, COMMAND, COMPLETION))
