"""How a job is shown while it goes on: a widget in a notebook, lines of text elsewhere."""
