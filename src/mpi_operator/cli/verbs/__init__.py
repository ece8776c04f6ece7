"""The verbs of `mpijob`: parse, act, print."""
