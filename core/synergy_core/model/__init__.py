"""What every stage reads and writes: snapshot, options, plan, resource vectors, reasons, and their JSON form."""
