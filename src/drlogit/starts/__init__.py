"""Where a fit starts: from an earlier result, from a neighbour on a path, or from some of the rows."""
