"""The dashboard: it records what happens on the cluster, and shows it. It never changes anything there.

`recorder` follows the API server and writes facts to `store`, a database. `live` keeps the present in memory. `api`
answers the page (`web`) and `kubectl synergy` from both, with each user's own rights.
"""
