"""The few kinds of panel that the dashboards are made of."""

from collections.abc import Sequence
from typing import NamedTuple

from grafana_foundation_sdk.builders import common, dashboard, prometheus, stat, timeseries
from grafana_foundation_sdk.models.common import (
    GraphDrawStyle,
    LegendDisplayMode,
    LegendPlacement,
    StackingMode,
    TooltipDisplayMode,
)
from grafana_foundation_sdk.models.dashboard import DashboardLinkType, DataSourceRef, VariableRefresh

SOURCE = DataSourceRef(type_val="prometheus", uid="${source}")
LEADS = "and on (instance) (kube_synergy_leader == 1)"
"""Keeps the leader's series of a gauge. Other replicas do not update theirs."""


class Query(NamedTuple):
    """One PromQL expression, and how its series are called."""

    expr: str
    legend: str


def leader(gauge: str, *labels: str, matching: str = "") -> str:
    """The leader's gauge, summed by `labels`."""
    return _summed(labels, f"{_selected(gauge, matching)} {LEADS}")


def per_second(counter: str, *labels: str, matching: str = "") -> str:
    """Increase of a counter per second, summed by `labels`."""
    return _summed(labels, f"rate({_selected(counter, matching)}[$__rate_interval])")


def increase(counter: str, *labels: str, matching: str = "", window: str = "1h") -> str:
    """Increase of a counter over the last hour, or another window, summed by `labels`."""
    return _summed(labels, f"increase({_selected(counter, matching)}[{window}])")


def quantile(part: float, histogram: str, *labels: str, window: str = "$__rate_interval") -> str:
    """A quantile of a histogram, by `labels`."""
    by = ", ".join(("le", *labels))
    return f"histogram_quantile({part}, sum by ({by}) (rate(kube_synergy_{histogram}_bucket[{window}])))"


def _summed(labels: Sequence[str], expr: str) -> str:
    return f"sum by ({', '.join(labels)}) ({expr})" if labels else f"sum({expr})"


def _selected(metric: str, matching: str) -> str:
    return f"kube_synergy_{metric}{{{matching}}}" if matching else f"kube_synergy_{metric}"


def number(title: str, expr: str, says: str, unit: str = "short", decimals: float = 0) -> stat.Panel:
    """One present value."""
    panel = stat.Panel().title(title).description(says).unit(unit).decimals(decimals).datasource(SOURCE)
    return panel.height(4).span(4).with_target(_target(Query(expr, title), 0))


def lines(
    title: str, queries: Sequence[Query], says: str, unit: str = "short", *, stacked: bool = False, span: int = 12
) -> timeseries.Panel:
    """Series over time. `stacked` if their sum means something."""
    panel = timeseries.Panel().title(title).description(says).unit(unit).datasource(SOURCE).min(0)
    panel = panel.draw_style(GraphDrawStyle.LINE).line_width(1).fill_opacity(25 if stacked else 5)
    if stacked:
        panel = panel.stacking(common.StackingConfig().mode(StackingMode.NORMAL))
    legend = common.VizLegendOptions().display_mode(LegendDisplayMode.LIST).placement(LegendPlacement.BOTTOM)
    panel = panel.legend(legend.show_legend(True))
    panel = panel.tooltip(common.VizTooltipOptions().mode(TooltipDisplayMode.MULTI)).height(8).span(span)
    for index, query in enumerate(queries):
        panel = panel.with_target(_target(query, index))
    return panel


def page(uid: str, title: str, says: str) -> dashboard.Dashboard:
    """An empty dashboard with a choice of data source and links to the others."""
    link = dashboard.DashboardLink("kube-synergy").type(DashboardLinkType.DASHBOARDS).tags(["kube-synergy"])
    made = dashboard.Dashboard(title).uid(uid).description(says).tags(["kube-synergy"]).refresh("30s")
    made = made.time("now-6h", "now").timezone("browser").readonly().link(link.keep_time(True))
    return made.with_variable(dashboard.DatasourceVariable("source").label("Data source").type("prometheus"))


def tenants() -> dashboard.QueryVariable:
    """The choice of tenants."""
    variable = dashboard.QueryVariable("tenant").label("Tenant").datasource(SOURCE)
    variable = variable.query("label_values(kube_synergy_tenant_jobs, tenant)").refresh(
        VariableRefresh.ON_TIME_RANGE_CHANGED
    )
    return variable.multi(True).include_all(True)


def _target(query: Query, index: int) -> prometheus.Dataquery:
    return prometheus.Dataquery().expr(query.expr).legend_format(query.legend).ref_id(chr(ord("A") + index))
