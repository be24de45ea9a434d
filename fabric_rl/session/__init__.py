"""The live objects of a run, and when they are saved."""
