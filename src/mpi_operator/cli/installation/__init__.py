"""The operator on a cluster: install, upgrade, uninstall."""
