"""What `mpijob run` is given, a file or a program, becomes valid jobs and the objects they need."""
