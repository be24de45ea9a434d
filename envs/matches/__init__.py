"""Games between players, and what was seen of them."""
