"""From the cluster to the planner's snapshot: what each job requests, is entitled to and may draw from quotas."""
