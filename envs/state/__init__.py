"""The state of the game after a step: GameState, its arrays, and its views from both sides."""
