"""What stands for a kubelet: pods as processes of this machine."""
