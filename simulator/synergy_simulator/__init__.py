"""Trace-driven simulator of a cluster: events, driven by the same `synergy_core.plan` that runs the real one.

For researchers: `simulate` and `compare` take files or objects, and own policies (`Policy`, `ranked`).
"""

from synergy_core.model.snapshot import Job
from synergy_core.policies import Policy
from synergy_core.policies.queue import Queue, Ranking, ranked
from synergy_simulator.engine.options import Options
from synergy_simulator.inputs.clusters import Cluster, SimulatedPool, homogeneous
from synergy_simulator.inputs.errors import InputError, SettingError
from synergy_simulator.inputs.profiles import ProfileTable
from synergy_simulator.inputs.traces import TraceJob
from synergy_simulator.own_policies import PolicyError
from synergy_simulator.study.load import load
from synergy_simulator.study.result import Comparison, Result
from synergy_simulator.study.run import compare, simulate
from synergy_simulator.workloads.workload import Workload

__all__ = [
    "Cluster",
    "Comparison",
    "InputError",
    "Job",
    "Options",
    "Policy",
    "PolicyError",
    "ProfileTable",
    "Queue",
    "Ranking",
    "Result",
    "SettingError",
    "SimulatedPool",
    "TraceJob",
    "Workload",
    "compare",
    "homogeneous",
    "load",
    "ranked",
    "simulate",
]
