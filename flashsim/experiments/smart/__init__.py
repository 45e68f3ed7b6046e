"""Queries on a drive with an inside: SQL, its plan, where its operators run, and how long that takes."""
