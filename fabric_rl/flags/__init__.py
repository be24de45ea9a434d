"""From words to objects: the command line and configuration files."""
