"""One leader: what a Lease says, who competes for it, and the fence that stops a former leader."""
