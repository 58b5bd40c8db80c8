"""The extender in memory, over sockets, and as a process beside a real kube-scheduler."""
