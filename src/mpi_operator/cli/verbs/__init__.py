"""The verbs of `mpijob`, a module for each: parse, act, print."""
