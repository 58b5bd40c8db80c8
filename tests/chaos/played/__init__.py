"""What the harness plays: containers, kubelets and gangs on nodes that are not there."""
