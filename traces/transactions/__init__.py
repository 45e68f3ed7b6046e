"""Workloads of transactions, one kind a file: those of TPC's benchmarks, and any references cut into transactions."""

from traces.transactions.base import WORKLOADS, TransactionWorkload, scaled, workload

__all__ = ["WORKLOADS", "TransactionWorkload", "scaled", "workload"]
