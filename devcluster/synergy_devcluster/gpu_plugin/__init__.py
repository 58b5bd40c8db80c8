"""A device plugin that offers fake NVIDIA GPUs to a real kubelet.

It speaks the kubelet's device plugin API (v1beta1) over the kubelet's sockets, is configured by flags
alone, and runs as a process beside the kubelet or in a container that mounts the kubelet's
device-plugins folder.
"""
