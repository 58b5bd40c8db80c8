"""Reproductions by the paper's name for them."""

from collections.abc import Callable, Mapping

from synergy_simulator.reproductions import (
    colocation,
    colocation_modes,
    gavel_authors,
    gavel_batches,
    gavel_fig13,
    gavel_fig16,
    gavel_loads,
    gavel_packing,
    gavel_placements,
    tiresias_composition,
    tiresias_fig7,
    tiresias_fig10,
    tiresias_ilp,
    tiresias_sensitivity,
    tiresias_tables,
)
from synergy_simulator.reproductions.common import Findings, Inputs
from synergy_simulator.reproductions.fig5 import fig5
from synergy_simulator.reproductions.fig6 import fig6
from synergy_simulator.reproductions.fig12 import fig12
from synergy_simulator.reproductions.ftf import ftf
from synergy_simulator.reproductions.gavel_fig12 import fig12 as gavel_fig12
from synergy_simulator.reproductions.gavel_fig14 import fig14 as gavel_fig14
from synergy_simulator.reproductions.gavel_fig15 import fig15 as gavel_fig15
from synergy_simulator.reproductions.load_figures import fig7, fig8, fig9
from synergy_simulator.reproductions.mechanism_figures import fig11, fig13
from synergy_simulator.reproductions.motivation import motivation
from synergy_simulator.reproductions.opt_gap import opt_gap
from synergy_simulator.reproductions.table5 import table5

REPRODUCTIONS: Mapping[str, Callable[[Inputs], Findings]] = {
    "colocation-best": colocation.best,
    "colocation-modes": colocation_modes.modes,
    "colocation-worst": colocation.worst,
    "gavel-authors": gavel_authors.authors,
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
