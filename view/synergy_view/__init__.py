"""What people see of a cluster: pure functions from API objects to answers, for the command line and other views.

`seen` reads a TrainingJob as its user's client got it. `queue`, `why`, `top`, `surface`, `history` and `usage` answer
one question each, `doctor` checks an installation. Nothing here reads a clock, a file or the network.
"""
