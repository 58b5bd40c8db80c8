"""What the history tells beyond the pages: `kubectl synergy history`, `rounds`, `usage` and `export` ask for it."""
