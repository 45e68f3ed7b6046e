"""Claims of papers held against runs: cells with their null models, and the verdicts that follow."""
