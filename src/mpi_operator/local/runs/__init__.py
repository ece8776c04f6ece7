"""The runs of this user: their directories, and the records of finished ones."""
