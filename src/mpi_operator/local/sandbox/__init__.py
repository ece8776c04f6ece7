"""Sandboxes, in which the processes of a pod run: `protocol` is their interface, `host` opens them.

Nothing is imported here: the helper processes (`fork_server`, `pod_init`) must start in
milliseconds.
"""
