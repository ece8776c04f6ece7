"""What should exist for a job: from a job to manifests.

Everything here is a pure function named for what it returns: no I/O, no clock, no randomness, and
nothing that is given is ever changed. Manifests may share parts with each other and with the job,
so nobody changes those either.

* One object per file: `service`, `config_map`, `ssh_secret`, `worker_pod`, `launcher_job`,
  `pod_group`.
* What pods need: `pod` puts together what both roles share, with `volumes` for what is mounted and
  `gang` for schedulers that start all pods or none. `implementations` is the table of MPIs, and
  `hostfile` lists the hosts for them.
* How a job starts: `remote_shell` reaches the workers, `worker_start` is what they run, `ssh_ports`
  are for those that share a node, and `scripts` run in the pods.
* What a gang must find free: `min_resources`, counted in `quantity`.
* What all of it depends on: `settings` of the operator, and `ownership` by the job.

The user's template wins wherever it can: what is set there is set for a reason.
"""
