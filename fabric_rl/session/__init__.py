"""The live objects of a run: building, monitoring, saving and stopping them."""
