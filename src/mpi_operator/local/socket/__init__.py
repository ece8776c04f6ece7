"""The UNIX socket through which other shells of the same user reach the cluster of a run."""
