"""Workloads of transactions, one kind a file: those of TPC's benchmarks, and any references cut into transactions."""

from traces.transactions.base import WORKLOADS, TransactionWorkload, scale_stream, workload

__all__ = ["WORKLOADS", "TransactionWorkload", "scale_stream", "workload"]
