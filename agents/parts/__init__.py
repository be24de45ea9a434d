"""What agents are made of."""
