"""From a raw table to numbers: columns of any kind, their encoding, and values by column name."""
