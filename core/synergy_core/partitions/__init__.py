"""Plans a cluster in parts: what is independent, or can be made so, is planned apart and put together again."""
