"""Solid state drives: a compiled engine and a SimPy specification of one event model, over shared flash state machines."""
