"""Runs on disk: their folders, checkpoints and provenance, and readers that can be used during training."""
