"""Summaries of traces, in one pass in constant memory."""
