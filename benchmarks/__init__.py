"""Claims about speed and memory, measured: always against something real, in one run."""
