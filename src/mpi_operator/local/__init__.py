"""One machine as a cluster. It knows pods and Jobs, but not MPIJobs.

* `apiserver`: `cluster.LocalCluster`, a `kube.client.Client` over objects in memory.
* `jobs`: the Job controller.
* `kubelet`: runs pods as processes, each in a `sandbox`; `remote_exec` stands for ssh between them.
* `socket`: lets other shells of the same user reach the cluster, which lives in one process.
* `runs`: the directories of runs, and the records of finished ones.

`embedded` puts them together. Import what you need from its module: a command that does not need a
part must not pay for importing it.
"""
