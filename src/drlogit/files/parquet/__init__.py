"""Parquet, through pyarrow: tables, samples in memory, and row blocks."""
