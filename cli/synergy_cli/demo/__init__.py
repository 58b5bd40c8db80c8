"""`kube-synergy demo`: from nothing to jobs finishing on a real cluster, told as it happens."""
