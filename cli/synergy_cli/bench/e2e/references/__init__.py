"""The least that an extender, an operator can be: what the product is measured beside, in the same run."""
