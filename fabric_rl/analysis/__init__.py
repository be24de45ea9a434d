"""Analysis of finished runs: curves, comparisons of groups, pictures and tables."""
