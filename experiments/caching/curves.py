"""Curves of misses by size for any policy: in one pass where larger pools hold all that smaller ones hold, else at some sizes; exact or of a sample.

A policy runs in miniature over a sample of the pages, in a pool that is as much smaller (Waldspurger, Saemundsson, Ahmad, Park: Cache
modeling and optimization using miniature simulations, USENIX ATC 2017); what parts of the sample, each over a pool of its own, disagree
tells the error.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from experiments.caching.numbered import NumberedTrace
from experiments.caching.running import Setting, compile_policies, policies, run
from experiments.caching.session import ReferenceSource
from experiments.caching.sizes import PoolSize, parse_sizes, pool_sizes
from experiments.caching.sources import ArrayTrace
