"""`kube-synergy colocation`: what jobs that share a GPU do to each other."""
