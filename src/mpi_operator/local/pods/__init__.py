"""One pod on one machine: its environment, its containers, its logs, and what is said about it.

`runner` puts the parts together and knows nothing of a cluster; `local.node` does.
"""
