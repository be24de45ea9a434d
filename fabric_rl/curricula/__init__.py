"""From easy to hard: phases and lessons."""
