"""Our operator and kubeflow/mpi-operator, measured in one run on one real API server.

    make bench                                        # all of it, with the other benchmarks
    python -m benchmarks.operators --quick            # a look, in a few minutes
    python -m benchmarks.operators --figures creation jobs
    python -m benchmarks.operators.real_pods          # with real pods on two nodes; root

Whoever is measured runs alone, as a process of this machine, as a user of its own with the same
permissions as the others. They take turns, and who begins changes from round to round. What is told
are ratios of rounds: the absolute numbers belong to the machine.

What happened is read from outside, and where the kernel and the API server keep it anyway: CPU and
memory from /proc, the times of requests from the audit log. Nobody watches pods being made.
"""
