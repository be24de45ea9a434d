"""Several roles in one run: each has its own agent, algorithm and settings."""
