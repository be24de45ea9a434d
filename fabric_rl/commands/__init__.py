"""The `fabric-rl` commands with their parser and output. They may import any package; no package imports them."""
