"""Generated references to pages, one kind a file: uniform, skewed, in loops and scans, and those of benchmarks."""

from traces.references.base import GENERATORS, Generated, generated_trace

__all__ = ["GENERATORS", "Generated", "generated_trace"]
