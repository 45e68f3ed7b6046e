"""Reproduced papers: what each claims, the runs that the claims are judged by, and the report."""

COMMANDS = {"reproduce": "face.reproduce:reproduce"}
