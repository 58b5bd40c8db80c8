"""Help for tests of the SDK."""
