"""Leader election: the Lease, the candidate for it, and the fence that stops a former leader."""
