"""What a configuration does, measured: what its reward pays for, and where its episodes begin."""
