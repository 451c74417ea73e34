"""Where a fit starts: from an earlier result, such as a neighbour on a path, or from a sample."""
