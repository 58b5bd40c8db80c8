"""What the long-running programs share: settings from the environment, JSON logs, HTTP servers with TLS, metrics and
probes, start and end of the process."""
