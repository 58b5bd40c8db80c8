"""Reproductions by the paper's name for them."""

from collections.abc import Callable, Mapping

from synergy_simulator.reproductions.common import Findings, Inputs
from synergy_simulator.reproductions.gavel import authors as gavel_authors
from synergy_simulator.reproductions.gavel import batches as gavel_batches
from synergy_simulator.reproductions.gavel import estimator as gavel_estimator
from synergy_simulator.reproductions.gavel import fig13 as gavel_fig13
from synergy_simulator.reproductions.gavel import fig16 as gavel_fig16
from synergy_simulator.reproductions.gavel import loads as gavel_loads
from synergy_simulator.reproductions.gavel import packing as gavel_packing
from synergy_simulator.reproductions.gavel import placements as gavel_placements
from synergy_simulator.reproductions.gavel.fig12 import fig12 as gavel_fig12
from synergy_simulator.reproductions.gavel.fig14 import fig14 as gavel_fig14
from synergy_simulator.reproductions.gavel.fig15 import fig15 as gavel_fig15
from synergy_simulator.reproductions.synergy.fig5 import fig5
from synergy_simulator.reproductions.synergy.fig6 import fig6
from synergy_simulator.reproductions.synergy.fig12 import fig12
from synergy_simulator.reproductions.synergy.ftf import ftf
from synergy_simulator.reproductions.synergy.load_figures import fig7, fig8, fig9
from synergy_simulator.reproductions.synergy.mechanism_figures import fig11, fig13
from synergy_simulator.reproductions.synergy.motivation import motivation
from synergy_simulator.reproductions.synergy.opt_gap import opt_gap
from synergy_simulator.reproductions.synergy.table5 import table5
from synergy_simulator.reproductions.thesis import colocation, colocation_modes
from synergy_simulator.reproductions.tiresias import composition as tiresias_composition
from synergy_simulator.reproductions.tiresias import fig7 as tiresias_fig7
from synergy_simulator.reproductions.tiresias import fig10 as tiresias_fig10
from synergy_simulator.reproductions.tiresias import ilp as tiresias_ilp
from synergy_simulator.reproductions.tiresias import sensitivity as tiresias_sensitivity
from synergy_simulator.reproductions.tiresias import tables as tiresias_tables

REPRODUCTIONS: Mapping[str, Callable[[Inputs], Findings]] = {
    "colocation-best": colocation.best,
    "colocation-modes": colocation_modes.modes,
    "colocation-worst": colocation.worst,
    "gavel-authors": gavel_authors.authors,
    "gavel-estimator": gavel_estimator.estimator,
    "gavel-fig9": gavel_loads.fig9,
    "gavel-fig10": gavel_loads.fig10,
    "gavel-fig13": gavel_fig13.fig13,
    "gavel-fig16": gavel_fig16.fig16,
    "gavel-packing": gavel_packing.packing,
    "gavel-placements": gavel_placements.placements,
    "gavel-fig11": gavel_loads.fig11,
    "gavel-fig12": gavel_fig12,
    "gavel-fig14": gavel_fig14,
    "gavel-fig15": gavel_fig15,
    "gavel-cost": gavel_batches.cost,
    "gavel-fifo": gavel_loads.fifo,
    "gavel-makespan": gavel_batches.makespan,
    "gavel-priorities": gavel_loads.priorities,
    "gavel-table3": gavel_batches.table3,
    "synergy-fig5": fig5,
    "synergy-fig6": fig6,
    "synergy-fig7": fig7,
    "synergy-fig8": fig8,
    "synergy-fig9": fig9,
    "synergy-fig11": fig11,
    "synergy-fig12": fig12,
    "synergy-fig13": fig13,
    "synergy-ftf": ftf,
    "synergy-motivation": motivation,
    "synergy-opt-gap": opt_gap,
    "synergy-table5": table5,
    "tiresias-composition": tiresias_composition.composition,
    "tiresias-fig7": tiresias_fig7.fig7,
    "tiresias-fig10": tiresias_fig10.fig10,
    "tiresias-fig12": tiresias_fig10.fig12,
    "tiresias-fig14": tiresias_sensitivity.fig14,
    "tiresias-fig15": tiresias_sensitivity.fig15,
    "tiresias-ilp": tiresias_ilp.ilp,
    "tiresias-table1": tiresias_tables.table1,
    "tiresias-table5": tiresias_tables.table5,
}
