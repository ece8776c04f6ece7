"""A job as people follow it: updates from its cluster, lines, progress, and how it ended."""
