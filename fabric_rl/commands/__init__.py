"""One file per `fabric-rl` command. They may import everything; nobody imports them."""
