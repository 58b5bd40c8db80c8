"""What Kubernetes objects of a cluster mean for jobs, as functions of their JSON: nodes, pods, pools, tenants."""
