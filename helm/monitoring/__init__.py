"""Grafana dashboards of the chart, as code. `make dashboards` writes them to `helm/kube-synergy/dashboards`."""
