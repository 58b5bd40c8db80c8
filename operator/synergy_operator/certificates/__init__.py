"""The certificates between scheduler, extender and workers. A Job of the chart creates and renews them once a day."""
