"""When rounds begin, and which of them need no plan."""
