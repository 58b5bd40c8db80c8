"""`kube-synergy demo`: starts a real cluster, runs jobs on it, and shows what happens."""
