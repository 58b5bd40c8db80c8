"""`kube-synergy bench client`: the project's client of the API server beside the `kubernetes` package's."""
