"""Compares our operator with kubeflow/mpi-operator in one run on one real API server.

    make bench                                        # all of it, with the other benchmarks
    python -m benchmarks.operators --quick            # a few minutes
    python -m benchmarks.operators --figures creation jobs
    python -m benchmarks.operators.real_pods          # with real pods on two nodes; root

Each operator runs alone, as a process of this machine, as its own user with equal permissions.
The operators take turns, and the order changes from round to round. The results are ratios of
rounds: absolute numbers depend on the machine.

All measurements come from outside: CPU and memory from /proc, the times of requests from the audit
log. No watch slows the API server down while pods are created.
"""
