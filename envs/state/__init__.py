"""What a step of the game looks like: GameState, its arrays and its views from either side."""
