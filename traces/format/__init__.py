"""Formats of trace files: what each looks like, how it is read and, where it can be, written."""

from traces.format.base import FORMATS, Format, formats, load_format, read_trace, recognise, writable

__all__ = ["FORMATS", "Format", "formats", "load_format", "read_trace", "recognise", "writable"]
