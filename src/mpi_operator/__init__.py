"""Run MPI jobs on Kubernetes and on one machine."""

__version__ = "0.1.0.dev0"  # the one source of the version; reading the metadata takes 50 ms
