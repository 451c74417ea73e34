"""Files: data to read, models to read and write."""
