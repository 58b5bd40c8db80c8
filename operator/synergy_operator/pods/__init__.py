"""The pods of a job: from the user's template to the manifests that kube-synergy creates."""
