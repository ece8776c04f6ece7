"""What stands for Kubernetes' Job controller."""
