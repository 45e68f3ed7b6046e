"""Systems of pools as people ask for them: designs of an SSD that extends a memory pool, run beside each other and told of."""
