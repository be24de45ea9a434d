"""Live objects of a run: build, monitor, save and stop them."""
