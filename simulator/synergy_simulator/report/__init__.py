"""A report as one HTML file: figures and plots of one or several simulations, nothing loaded from elsewhere."""
