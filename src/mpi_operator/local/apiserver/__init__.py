"""What stands for an API server: objects, versions, watches, and what follows from a write."""
