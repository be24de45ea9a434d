"""From environments to `[T, N]` rollouts."""
