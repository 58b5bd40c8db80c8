"""Live commands about the cluster, its tenants and its rounds: `top`, `tenants`, `rounds`, `policy` and the others."""
