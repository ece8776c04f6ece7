"""Benchmarks of speed and memory, always against a real alternative in the same run."""
