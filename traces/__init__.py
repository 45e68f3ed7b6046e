"""Traces: one schema, recorded from any driver, and what can be told from them.

Folders of this package, of which some have files of the same names:

* `format`: formats of requests to devices, with offset and length;
* `file`: the schema of such requests, and how they are recorded, converted and read in part;
* `page_format`: formats of references to pages, numbers without a device; `references` generates such;
* `replay`: engines that repeat a trace of requests on a real device, of which `fio` is one;
* `workload` and `transactions`: generated requests, and generated transactions of page references;
* `calls`: requests that a recorded program's system calls cause; `summary`: what is counted of a trace.
"""
