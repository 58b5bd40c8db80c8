"""What the kube-scheduler sends to an extender and reads back."""
