"""`kube-synergy bench planner`: seconds of plans."""
