"""A run on disk: its folder, its checkpoints, where it comes from; and what can be read from it while it goes on."""
