"""Pictures of arenas."""
