"""Pictures of games without a display, and a sender for a viewer of somebody else."""
