"""Which counters a profile run has: dcgm-exporter's where there is one, else NVML's, else none and the reason."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from synergy_profiler.counters.dcgm import DcgmError, DcgmSampler
from synergy_profiler.counters.gpm import GpmSampler
from synergy_profiler.counters.load import LONGEST_PROBLEM, own_gpus, with_load

if TYPE_CHECKING:
    from collections.abc import Mapping

    from synergy_profiler.gpu_usage import GpuUsage

URL = "SYNERGY_DCGM_URL"
INTERVAL = "SYNERGY_DCGM_INTERVAL_S"
_INTERVAL_S = 30.0
"""The exporter's own default (`--collect-interval`)."""


class Counters:
    """The counters that could be had when it was made, until `stop`."""

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        environ = os.environ if environ is None else environ
        self._problems: list[str] = []
        own = own_gpus(environ)
        self._sampler: DcgmSampler | GpmSampler = self._dcgm(environ, own) or GpmSampler(own, environ)

    @property
    def settle_s(self) -> float:
        """How long the command must train, beyond what its steps need, before counters tell of nothing else."""
        return self._sampler.settle_s

    def usage(self, usage: GpuUsage, begin: float, end: float) -> GpuUsage:
        """What nvidia-smi told from `begin` to `end`, by counters where these tell, else with the reason."""
        load = self._sampler.load(begin, end)
        if load is not None:
            return with_load(usage, self._sampler.source, load)
        return without_counters(usage, "; ".join([*self._problems, self._sampler.problem]))

    def stop(self) -> None:
        """End the sampling."""
        self._sampler.stop()

    def _dcgm(self, environ: Mapping[str, str], own: frozenset[str]) -> DcgmSampler | None:
        url = environ.get(URL, "")
        if not url:
            self._problems.append("no dcgm-exporter is set")
            return None
        try:
            return DcgmSampler(url, _interval(environ), own)
        except DcgmError as error:
            self._problems.append(str(error))
            return None


def without_counters(usage: GpuUsage, problem: str) -> GpuUsage:
    """The usage with the reason why it is utilisation only."""
    return replace(usage, problem=problem[:LONGEST_PROBLEM])


def _interval(environ: Mapping[str, str]) -> float:
    try:
        value = float(environ.get(INTERVAL, ""))
    except ValueError:
        return _INTERVAL_S
    return value if 0 < value <= 3600 else _INTERVAL_S
