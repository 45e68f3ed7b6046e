"""Division of a join's buffer pages among its inputs, its outputs and its workspace.

The closed forms are those of Haas, Carey and Livny, "SEEKing the Truth About Ad Hoc Join Costs", UW-Madison TR 1148 (1993), here
*TR*, as listed in table 1 of Do and Patel, "Join Processing for Flash SSDs", DaMoN 2009, here *do2009*; where the printed square
roots are ambiguous, the form taken is the one that minimises the cost it was derived from.

All sizes are pages.  An empty relation is given buffers like one of a single page.  The fudge factor F stands for what a hash
table or a tournament tree needs beyond the pages that it holds.  Numeric minima are found in `models.optimum`.
"""
