"""What the programs on the command line share."""
