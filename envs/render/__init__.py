"""Images of games without a display, videos, and a sender for the viewer RocketSimVis."""
