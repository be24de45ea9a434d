"""Players and the matches between them: a library that may import `envs` and `agents`."""
