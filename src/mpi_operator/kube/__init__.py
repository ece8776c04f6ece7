"""A Kubernetes client and the parts of a controller that know nothing about MPI.

In the order in which things happen:

* `config`: where the API server is, and our identity.
* `http.HttpClient`: the client; `client.Client`: what every client can do, also one in memory.
* `errors`: what can go wrong; `retry`: which requests the client itself retries.
* `informer.Informer`: keeps a `store` of `objects` and calls handlers with changes.
* `workqueue.WorkQueue`: the keys to reconcile; `queue_workers.run_workers`: the workers.
* `leader_election.elector.Elector`: only one process writes; its `fence` says who may.
* `events.EventRecorder`: events for users; `metrics.Metrics`: metrics for machines.
* `discovery`: what a server can do.

Nothing is imported here, so that importing the types of `client` does not import aiohttp.
"""
