"""Builds the manifests of the objects that a job needs.

Every function is pure and named after what it returns: no I/O, no clock, no randomness, and no
argument is changed. Manifests may share parts with each other and with the job, so callers do not
change them either.

* Objects, one per file: `service`, `config_map`, `ssh_secret`, `worker_pod`, `launcher_job`,
  `pod_group`.
* Parts of pods: `pod` has what both roles share, `volumes` the mounts, and `gang` the metadata for
  gang schedulers. `implementations` has what each MPI needs, `hostfile` the hosts.
* The start of a job: `remote_shell` reaches the workers, `worker_start` is the command that workers
  run, and `scripts` are the shell scripts in the pods.
* The size of a gang: `min_resources`, computed with `quantity`.
* Used by all of them: the `settings` of the operator and `ownership` by the job.

The user's template takes precedence wherever possible.
"""
