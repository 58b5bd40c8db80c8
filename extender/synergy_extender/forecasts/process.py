"""The process that makes one forecast. It reads a question in MessagePack from stdin, answers on stdout and ends, which
frees the simulation's memory."""

import os
import resource
import sys
from collections.abc import Mapping
from dataclasses import replace

import msgspec

from synergy_core.collector import collector_paused
from synergy_core.colocation.predictors.model_format import SharingModel
from synergy_extender.colocation.models import FOLDER_VARIABLE, predictors, read_models
from synergy_extender.forecasts.question import MOST_BYTES, NO_MEMORY, ForecastAnswer, ForecastQuestion, StartForecast
from synergy_simulator.forecast.forecast import Forecaster
from synergy_simulator.forecast.options import options_of_snapshot

NICENESS = 19
"""All other work on the machine has precedence."""


def answer(question: ForecastQuestion, models: Mapping[str, SharingModel] | None = None) -> ForecastAnswer:
    """Simulate the futures of a snapshot. `models` are the fitted predictors of what sharing a GPU costs, by type."""
    snapshot, config = question.snapshot, replace(question.config, explain=False)
    if models and config.colocation != "none":
        config = replace(config, predictors=predictors(models, config.colocation))
    options = options_of_snapshot(snapshot, config)
    found = Forecaster(snapshot, options).forecast(question.draws)
    starts = tuple(
        StartForecast(one.job, one.start.p10, one.start.p50, one.start.by)
        for one in found.jobs
        if one.state == "waiting" and one.unknown is None
    )
    return ForecastAnswer(starts, found.draws)


def main() -> None:
    """Answer the question on stdin. Exit status NO_MEMORY where MOST_BYTES are not enough."""
    os.nice(NICENESS)
    resource.setrlimit(resource.RLIMIT_DATA, (MOST_BYTES, MOST_BYTES))
    try:
        asked = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=ForecastQuestion)
        with collector_paused():
            made = answer(asked, read_models(os.environ.get(FOLDER_VARIABLE, "")))
        sys.stdout.buffer.write(msgspec.msgpack.encode(made))
    except MemoryError:
        sys.exit(NO_MEMORY)


if __name__ == "__main__":
    main()
