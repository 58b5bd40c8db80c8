"""Live commands about the cluster: `top`, `usage`, `rounds`, `policy`, `export`, `doctor`, `dashboard`, `what-if`."""
