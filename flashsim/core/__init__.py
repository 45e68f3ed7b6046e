"""What every room uses: units, errors, requests, members, random numbers, provenance, compiled kernels."""
