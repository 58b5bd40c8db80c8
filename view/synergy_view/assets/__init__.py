"""Files of others that pages embed: Apache ECharts, which draws charts in a browser.

Read one with `importlib.resources.files(assets).joinpath(assets.ECHARTS)`. README.md beside it has the version and the
checksum.
"""

from typing import Final

ECHARTS: Final = "echarts.min.js"
"""The whole library as one script; it defines `echarts`."""
