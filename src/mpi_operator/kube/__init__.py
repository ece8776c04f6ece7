"""How to talk to Kubernetes. Knows nothing about MPI.

In the order in which things happen:

* `config` says where the API server is and who we are.
* `http.HttpClient` talks to it; `client.Client` is what any cluster can do, real or in memory.
* `errors` is what can go wrong; `retry` is what the client does about it by itself.
* `informer.Informer` keeps a `store` of `objects` and tells handlers of changes.
* `workqueue.WorkQueue` collects what somebody should look at; `workers.work` looks.
* `election.Elector` makes sure that one process writes; `fence` is how others ask.
* `events.EventRecorder` tells people; `metrics.Metrics` tells machines.
* `discovery` asks what a server can do.

Nothing is imported here: who needs the types of `client` does not pay for HTTP.
"""
