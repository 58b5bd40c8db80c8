"""Tenants on the cluster: the tree that plans keep, what each tenant uses, borrows and lends, and what its status
says."""
