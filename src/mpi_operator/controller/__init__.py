"""What to do about a job: read, decide, write.

    caches ──► observe ──► make_plan ──► execute ──► status_of ──► publish
     (read)     (read)      (pure)       (write)      (pure)       (write)

* `cached_types` and `caches` hold what is known of the cluster; `observe` collects what is known
  about one job, an `observed.Observed`.
* `plan.make_plan` decides. Each policy is a file: `prerequisites`, `host_list`, `worker_set`,
  `replacement`, `launcher`, `cleanup`, `pod_diagnostics`. A plan is data: `actions` in stages.
* `execute` carries it out; what the server refuses becomes a problem.
* `status.status_of` computes the status, `events` what changed in it, and `publish` stores the
  status before it records the events.
* `reconciler` runs these steps in a row, and `controller` wires everything together.

No decision depends on anything that a restart would lose: what `job_state` holds only saves work.
"""
