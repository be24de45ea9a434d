"""Training runs as processes: several seeds, and searches for good settings and for fast ones."""
