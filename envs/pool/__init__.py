"""RocketSimPool, many arenas behind one gymnasium.vector.VectorEnv; its players, images, videos and replays."""
