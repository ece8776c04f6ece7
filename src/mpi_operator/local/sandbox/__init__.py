"""Where the processes of a pod run: `protocol` says what a sandbox can do, `host` makes them.

Nothing is imported here: the helper processes (`warden`, `keeper`) must start in milliseconds.
"""
