"""What a cluster needs to run the operator: pure, from the choices of an administrator to objects.

`make generate` writes them to `deploy/`, and `mpijob install` applies them.
"""
