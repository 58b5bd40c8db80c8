"""A DRA driver of fake GPUs: ResourceSlices, claims prepared for the kubelet, and what containers get of them."""
