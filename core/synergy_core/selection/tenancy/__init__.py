"""Tenants in the selection: what they are guaranteed, and how much they may hold, borrow and lend."""
