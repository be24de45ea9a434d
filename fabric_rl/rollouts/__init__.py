"""Collection of `[T, N]` rollouts from environments."""
