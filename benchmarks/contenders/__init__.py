"""Three ways of talking to the same API server, each with the same tasks.

Each module has a function per task of `benchmarks.kube.TASKS`, asynchronous or not, taking a `Task`
and returning the `Cost` of doing it once. Every measurement is a process of its own.
"""
