"""Parts of agents: networks, encoders, memory, policy heads."""
