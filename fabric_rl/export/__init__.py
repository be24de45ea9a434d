"""Export of policies to files that other programs can run, and that can be loaded again as players."""
