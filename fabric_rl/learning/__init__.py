"""Learning: updates of the weights from rollouts."""
