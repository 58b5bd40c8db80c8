"""What the SDK and `kubectl synergy` ask of a cluster. Everything raises what the client raises (synergy_kube)."""
