"""From the cluster to a snapshot, from a plan to changes of status: pure steps, and the leader's loop around them."""
