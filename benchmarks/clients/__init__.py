"""Three clients of the same API server, with the same tasks.

Each module has one function for each of `benchmarks.kube.TASKS`, asynchronous or not, which takes a
`Task` and returns the `Cost` of doing it once. Every measurement runs in its own process.
"""
