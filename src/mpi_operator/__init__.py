"""Run MPI jobs on Kubernetes and on one machine."""
