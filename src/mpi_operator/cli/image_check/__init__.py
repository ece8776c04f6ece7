"""`mpijob image check`: what an image lacks for use in an MPIJob."""
