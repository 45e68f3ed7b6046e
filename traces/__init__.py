"""Traces: one schema, recorded from any driver, and what can be told from them."""
