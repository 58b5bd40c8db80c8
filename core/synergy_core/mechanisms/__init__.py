"""How CPU and memory are allocated to jobs.

A mechanism is a function `(Round) -> Outcome`. It gets the queue of all jobs and the nodes of each GPU type, and
answers which jobs run on which nodes with how much CPU and memory. There are two kinds:

* Mechanisms for fungible demands (`fungible`) select jobs by their GPUs alone, in the order of the queue. They never
  make a job slower than its GPU-proportional share would.
* Mechanisms for fixed demands (`fixed_demands`) give a job its whole demand vector or nothing, as schedulers do that do
  not know what a job can do without. GPUs may idle for want of CPU or memory beside them.
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
