"""`mpijob run`: jobs on this machine, from their start to their end."""
