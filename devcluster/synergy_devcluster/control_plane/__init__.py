"""etcd, the API server, controllers and schedulers: certificates, command lines, processes, and a client of the API."""
