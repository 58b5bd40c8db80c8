"""Nodes: real ones with a kubelet, fake ones played by kwok, their GPUs, volumes and network."""
