"""`kube-synergy bench e2e`: the product's own processes on a devcluster, under load."""
