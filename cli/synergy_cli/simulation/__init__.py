"""`kube-synergy simulate` and what goes with it."""
