"""RocketSimPool, many arenas behind one gymnasium.vector.VectorEnv; its players, pictures, videos and replays."""
