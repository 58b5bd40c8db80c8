"""How the jobs' CPU and memory are dealt out.

A mechanism is a function `(Round) -> Outcome`: it gets the line of all jobs and the nodes of each GPU type, and says
who runs where with what. There are two kinds:

* Mechanisms for fungible demands (`fungible`) let run whoever's GPUs fit, in the order of the line, and promise never
  to make a job slower than its GPU-proportional share.
* Mechanisms for fixed demands (`fixed_demands`) give a job its whole demand vector or nothing, as schedulers do that
  do not know what a job can do without. GPUs may stay idle for want of CPU or memory beside them.
"""

from collections.abc import Mapping

from synergy_core.mechanisms import drf, greedy, opt, proportional, tetris, tune
from synergy_core.mechanisms.fungible import fungible
from synergy_core.mechanisms.mechanism import Mechanism
from synergy_core.mechanisms.tuned import tuned

MECHANISMS: Mapping[str, Mechanism] = {
    "drf": drf.mechanism,
    "drf-tune": tuned(drf.order),
    "greedy": greedy.mechanism,
    "opt": opt.mechanism,
    "proportional": fungible(proportional.pack),
    "tetris": tetris.mechanism,
    "tetris-tune": tuned(tetris.order),
    "tune": fungible(tune.pack),
}
