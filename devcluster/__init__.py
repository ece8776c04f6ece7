"""A real Kubernetes for development and tests, in seconds: a control plane, or a whole cluster.

Read in this order: `binaries` builds the pinned programs from source, `pki` makes the keys,
`components` has the command lines, `process` runs one program, `runs` makes sure that nothing
outlives its owner, and `control_plane` puts them together. That needs no root.

With root there are nodes: `machine` has the namespaces of a node, `network` its links,
`containerd`, `kubelet`, `kube_proxy`, `cni` and `coredns` the programs, `image_store` its images;
`node` puts them together, and `cluster` is what tests use. `slots` keeps clusters apart, and
`slot_cleanup` removes what they leave on the machine.

`python -m devcluster --help` is the command line. Nothing here is shipped in the wheel.
"""
