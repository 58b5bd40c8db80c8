"""The four scheduler verbs as functions of the request and what is known; only `bind` has an effect."""
