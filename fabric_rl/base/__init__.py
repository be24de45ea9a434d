"""The floor that everything stands on: no torch, no Lightning. `envs` imports this, and nothing else of fabric_rl."""
