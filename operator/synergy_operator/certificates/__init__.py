"""The certificates between scheduler, extender and workers: made and renewed by a Job of the chart, run once a day."""
