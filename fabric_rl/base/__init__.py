"""The bottom layer, without torch or Lightning: the only part of fabric_rl that `envs` imports."""
