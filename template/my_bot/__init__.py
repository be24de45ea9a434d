"""Agent and rewards of a Rocket League bot."""
