"""What to do about a job: read, decide, write.

    caches ──► observe ──► remember ──► make_plan ──► execute ──► decide_status ──► publish
     (read)     (read)      (pure)       (pure)       (write)        (pure)         (write)

* `cached_types` and `caches` hold what is known of the cluster; `observe` collects what is known
  about one job, an `observed.Observed`.
* `remember` computes what the process remembers about the job, a `job_state.JobState`. No verdict
  depends on anything that a restart would lose.
* `plan.make_plan` decides. Each policy is a file and gives one decision: `prerequisites`,
  `host_list`, `host_announcement`, `worker_set`, `replacement`, `failed_worker`, `launcher`,
  `launcher_log`, `launcher_retry`, `bare_launcher`, `pod_diagnostics`, `init_timeout`,
  `lost_workers`, `horovod_blacklist`, `cleanup`. A plan is data: `actions` in stages.
* `job_record` is what must survive a restart, stored with the job's ConfigMap.
* `execute` carries it out; what the server refuses becomes a problem.
* `status.decide_status` computes the status, `events` what changed in it, and `publish` stores the
  status before it records the events.
* `reconciler` runs these steps in a row, and `controller` wires everything together.
"""
