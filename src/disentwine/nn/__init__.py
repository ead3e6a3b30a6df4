"""Building blocks that know no loss."""
