"""The three HTTP servers: scheduler verbs, human and worker API, metrics and probes."""
