"""Command line of training: read the settings, launch the ranks, report the results."""
