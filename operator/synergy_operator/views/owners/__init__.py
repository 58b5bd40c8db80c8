"""Objects of other controllers that the operator starts and stops: Jobs and the like."""
