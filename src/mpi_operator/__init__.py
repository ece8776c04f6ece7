"""Run MPI jobs on Kubernetes and on one machine."""

__version__ = "0.1.0.dev0"  # and in pyproject.toml; reading that of the distribution takes 50 ms
