"""What a pool measures besides rewards."""
