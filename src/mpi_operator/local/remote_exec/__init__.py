"""What stands for ssh between the pods of this machine."""
