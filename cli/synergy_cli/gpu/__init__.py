"""`kube-synergy gpu`: measurements on a real GPU of this machine."""
