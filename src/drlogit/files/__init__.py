"""Everything that reads or writes files: formats, limits, models."""
