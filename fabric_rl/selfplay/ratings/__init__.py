"""How good players are, and how sure that is."""
