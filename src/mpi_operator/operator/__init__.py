"""The `mpi-operator` program: a controller as a process that people run.

`options` are its flags, `program` the wiring, `life` the order of things from the first question
to the last write. `preflight` asks whether all that is needed is there, `standby` watches the
lease, `health` and `endpoints` answer probes, `logs` and `exit_codes` say what happened.
"""
