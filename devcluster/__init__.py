"""A real Kubernetes for development and tests, in seconds: a control plane, or a whole cluster.

Read in this order: `binaries` builds the pinned programs from source, `pki` makes the keys,
`components` knows the command lines, `process` runs one program, `runs` makes sure that nothing
outlives its owner, and `control_plane` puts it together. That needs no root.

With root there are nodes: `machine` is the computer of one, `network` its links, `containerd`,
`kubelet`, `kube_proxy`, `cni` and `coredns` what runs in and beside it, `image_store` its images,
`node` all that together, and `cluster` what tests use. `slots` and `leftovers` see to it that
clusters do not meet and nothing stays behind.

`python -m devcluster --help` is the command line. Nothing here is shipped in the wheel.
"""
