"""From measured CPU points to a sensitivity matrix and a demand vector (Synergy, section 3)."""
