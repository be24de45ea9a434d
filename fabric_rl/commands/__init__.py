"""Commands of `fabric-rl` with their parser and output. They may import everything; nothing imports them."""
