"""What everything may use: no torch, no Lightning. `envs` imports this, and nothing else of fabric_rl."""
