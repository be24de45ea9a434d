"""RocketSim itself: arenas, its structs, and reading them into a GameState."""
