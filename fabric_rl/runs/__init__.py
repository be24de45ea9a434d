"""A run on disk: its folder, checkpoints and beginning; and what can be read from it while it goes on."""
