"""An array in a ``.npy`` file as row blocks, read where it lies."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from ...rows.row_blocks import RowBlocks, cut_rows
from ..binary_files import DenseFile
from .array import read_header


def npy_blocks(path: Path, block_rows: int | None) -> RowBlocks:
    """The rows of a 2-D array of numbers."""
    with open(path, "rb") as file:
        header = read_header(file, os.fstat(file.fileno()).st_size, str(path))
    shape, by_column, dtype, offset = header
    if len(shape) != 2 or dtype.kind not in "biuf":
        raise ValueError(
            f"{path} must hold a 2-D array of numbers, got {dtype} of shape {shape!s:.60}"
        )
    if not min(shape):
        raise ValueError(f"{path} is empty: its array has shape {shape}")
    if by_column:  # rows are scattered over the file: let the system find them
        mapped = np.memmap(path, dtype, "r", offset, shape, order="F")
        return RowBlocks.from_array(mapped, block_rows)
    lengths = cut_rows(shape[0], shape[1] * dtype.itemsize, block_rows)
    return RowBlocks(DenseFile(path, offset, dtype, lengths, shape[1]), lengths, shape[1])
