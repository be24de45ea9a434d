"""Training runs as processes: several seeds, and searches for good or fast settings."""
