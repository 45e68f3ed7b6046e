"""Systems of a memory pool and its SSD extension: setup, devices, run."""

from flashsim.execution.pooled.options import LogOptions, PoolOptions

__all__ = ["LogOptions", "PoolOptions"]
