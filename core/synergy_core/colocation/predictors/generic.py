"""Predictors for GPU types that nothing was measured on: the load's part of what was fitted to 838 public pairs."""

import numpy as np

from synergy_core.colocation.predictors.effects import Effects
from synergy_core.colocation.predictors.sums import LinearSums

SUMS = LinearSums(base=1.156, compute=-0.248, bandwidth=0.035)

_LOAD = {"partners": 0.0075, "compute": 0.021, "product": -0.299, "excess": -0.134}

EFFECTS = Effects(
    names=tuple((kind, "") for kind in _LOAD),
    mean=np.array(list(_LOAD.values())),
    covariance=np.diag([0.02**2] * len(_LOAD)),
    variances={
        "own": 0.0026,
        "own x compute": 0.0042,
        "own configuration": 0.0012,
        "partner": 0.0007,
        "partner x own": 0.0046,
        "partner configuration": 0.0009,
        "pair": 0.0030,
        "job": 0.0017,
        "together": 0.0003,
    },
)
