"""One machine as a cluster. Knows pods, not what they are for.

The first half is an API server without a server, and the part of Kubernetes behind it that a job
relies on:

* `cluster.LocalCluster` is a `kube.client.Client`: what works on Kubernetes works on it.
* `kinds` says which objects there are; whoever has a kind of their own adds a row. `defaults` is
  what the built-in ones have where nobody says otherwise.
* A write: `names` and `writing` say what is stored, `patches` and `scale` are other ways to say it,
  `refusals` is how it is refused.
* `stored` is an object at one version, `table` is all of them, `history` is what happened to them.
* A read: `selectors` and `selection` choose, `watching` tells.
* `deletion` is what becomes of a deleted object, `garbage` of what it owned.
* `job_controller` runs Jobs of one pod; what it does is decided in `job_decisions`.

The second half is the node: `node` runs pods as processes, each in a `sandbox` with its `volumes`,
and `transport` lets the ranks of one pod be started from another.

A cluster lives in one process. `server` lets others of the same user use it, `remote` is the
`Client` that they do it with, and `requests` is what the two say; `runs` knows where to look. What
is remembered of a run when it has ended is in `records`, and `finished` is how it is read.

Import what you need from its module: nothing here is paid for that is not used.
"""
