"""One file per `fabric-rl` command, and what they share. They may import everything; nobody imports them."""
