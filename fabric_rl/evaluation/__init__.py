"""Players and the matches between them: a library, which knows `envs` and `agents`."""
