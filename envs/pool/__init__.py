"""RocketSimPool: many arenas behind one gymnasium.vector.VectorEnv."""
