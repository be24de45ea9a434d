"""What a reward really pays for: scripted games, measured."""
