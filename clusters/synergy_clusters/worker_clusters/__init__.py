"""The worker clusters: their kubeconfigs, and each one as it is followed."""
