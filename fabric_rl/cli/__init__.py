"""The parts that all programs on the command line share."""
