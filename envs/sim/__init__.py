"""RocketSim: its arenas and structs, and a reader that copies them into a GameState."""
