"""Runs of this user: their directories, and what is kept of those that have ended."""
