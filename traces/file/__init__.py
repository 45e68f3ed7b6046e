"""Trace files: the schema, how one is recorded, a part of one, one in another format, and one as references to pages."""
