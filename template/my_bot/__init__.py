"""A Rocket League bot: its agent and its rewards."""
