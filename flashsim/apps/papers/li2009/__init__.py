"""Li, On, Xu, Choi and Hu, "DigestJoin: Exploiting Fast Random Reads for Flash-based Joins", MDM 2009: its claims, and what judges them."""
