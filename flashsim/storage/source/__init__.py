"""Sources of relations: generators, files and tables of other systems."""

from flashsim.storage.source.base import SOURCES, Source, load_pair, open_source, source_file

__all__ = ["SOURCES", "Source", "load_pair", "open_source", "source_file"]
