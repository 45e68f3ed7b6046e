"""Systems of a memory pool and its SSD extension: setup, devices, run."""

from flashsim.execution.pooled.options import PoolOptions

__all__ = ["PoolOptions"]
