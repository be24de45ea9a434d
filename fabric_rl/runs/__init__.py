"""A run on disk: its folder, checkpoints and provenance, and what can be read while it trains."""
