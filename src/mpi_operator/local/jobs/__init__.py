"""The Job controller of the local cluster."""
