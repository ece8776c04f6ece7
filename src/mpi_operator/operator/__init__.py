"""The `mpi-operator` program: runs the controller as a process.

`options` are its flags, `main` wires the parts together, and `lifecycle` runs them in order.
`preflight` checks the API server at startup, `standby` checks the lease, `health` and `endpoints`
answer probes, `log_format` and `exit_codes` report what happened.
"""
