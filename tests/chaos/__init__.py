"""Chaos: every component of kube-synergy and of the control plane below it is killed, paused and cut off, nodes fail
and objects vanish, while training jobs profile, start, run, yield, resume and finish. `make chaos` runs it.

Real are: etcd, the API server, kube-controller-manager and both kube-schedulers of the devcluster; the operator and two
replicas of the extender as processes with the rights that the chart gives them; TLS between all of them; the library's
lease reports with tokens that the API server made for the pod. Played are: the nodes (kwok), the Service of the
extender (`link.py` forwards to replicas that are ready), the Deployments (`programs.py` starts again what ended), and
what happens inside the containers (`gang.py`, `player.py`): steps are counted instead of trained, a checkpoint is a
number that outlives its run, a profile measurement is a curve.
"""
