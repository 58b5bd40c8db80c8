"""The I/O around managed objects."""
