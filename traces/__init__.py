"""Traces: one schema, recorded from any driver, and what can be told from them.

`format` has formats of requests to devices, `page_format` of references to pages, which are numbers without a device; `file` has the
schema of requests, and `references` generates pages.  `replay` repeats requests on a real device, `fio` for one.  `workload` and
`transactions` generate requests and page references, `calls` makes requests of system calls, and `summary` counts what a trace holds.
"""
