"""The watched copy of the cluster: jobs, pods, nodes, pools and the policy, reduced to what decisions need."""
