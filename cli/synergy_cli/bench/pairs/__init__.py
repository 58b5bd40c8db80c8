"""`kube-synergy bench pairs`: processor seconds of a plan's pairs of jobs that may share a GPU."""
