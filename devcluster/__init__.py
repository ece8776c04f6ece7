"""A real Kubernetes control plane for development and tests, in seconds and without containers.

Read in this order: `binaries` builds the pinned programs from source, `pki` makes the keys,
`components` knows the command lines, `process` runs one program, `runs` makes sure that nothing
outlives its owner, and `control_plane` puts it together. `python -m devcluster --help` is the
command line. Nothing here is shipped in the wheel.
"""
