"""What to do about a job: read, decide, write.

    caches ──► observe ──► make_plan ──► execute ──► status_of ──► publish
     (read)     (read)      (pure)       (write)      (pure)       (write)

* `kinds` and `caches` are what is known of the cluster; `observe` puts together what is known about
  one job, an `observed.Observed`.
* `plan.make_plan` decides. Each policy is a file: `foundations`, `hosts`, `worker_set`,
  `replacement`, `launcher`, `cleanup`, `pod_troubles`. A plan is data: `actions` in stages.
* `execute` does it; what the server refuses becomes a `trouble`.
* `status.status_of` says what is so, `announcements` what of it is news, and `publish` stores the
  first before it tells the second.
* `reconciler` is these steps in a row, and `controller` is everything put together.

No decision is based on anything that a restart would lose: what `memory` holds only saves work.
"""
