"""The tests; ``python -m tests`` runs every check of the project."""
