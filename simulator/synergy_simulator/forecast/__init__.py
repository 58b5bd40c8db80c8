"""The future of a cluster: simulations that begin with a snapshot and continue with possible arrivals.

`present` begins a simulation with a snapshot, `taken` makes snapshots of a simulation. `arrivals` draws future jobs
from past ones, `forecast` simulates the draws, `what_if` changes the snapshot or the policy, `calibration` compares
forecasts with the events that followed.
"""
