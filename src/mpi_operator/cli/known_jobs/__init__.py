"""The jobs of this user on this machine, running and finished."""
