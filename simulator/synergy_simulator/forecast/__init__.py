"""What a cluster will do: simulations that begin with a snapshot and go on with what may come.

`present` makes a snapshot the beginning of a simulation, `taken` makes snapshots of one. `arrivals` draws future jobs
from the past ones, `forecast` runs the draws, `what_if` changes the snapshot or the policy, `calibration` compares
forecasts with what then happened.
"""
