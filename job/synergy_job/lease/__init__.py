"""Reports to the extender, and the lease that its answers renew."""
