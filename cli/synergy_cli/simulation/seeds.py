"""`--seeds`: the same simulations with several seeds, for confidence intervals."""

import click
from click.core import ParameterSource

from synergy_cli.errors import BadInputError
from synergy_cli.simulation.values import as_window


def _as_seeds(context: click.Context, option: click.Parameter, text: str | None) -> tuple[int, ...]:
    """`A:B`, seeds A to B - 1, at least two; empty where there is none."""
    window = as_window(context, option, text)
    if window is None:
        return ()
    if window[1] - window[0] < 2:
        raise click.BadParameter(f"needs at least two seeds for an interval, is {text!r}; leave it out, or use --seed")
    return tuple(range(*window))


seeds_option = click.option(
    "--seeds",
    callback=_as_seeds,
    metavar="A:B",
    help="Simulate with each seed from A to B - 1 and print means with 95 % confidence intervals. "
    "`compare` replaces {seed} in the name of --trace by the seed.",
)


def seeds_of(seeds: tuple[int, ...], seed: int) -> tuple[int, ...]:
    """The seeds to simulate with. Raises BadInputError where both options are given."""
    if seeds and click.get_current_context().get_parameter_source("seed") is ParameterSource.COMMANDLINE:
        raise BadInputError("--seeds: takes the place of --seed; give one of them")
    return seeds or (seed,)
