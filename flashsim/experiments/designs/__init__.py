"""Designs of an SSD that extends a memory pool, run beside each other: their study, results and report."""
