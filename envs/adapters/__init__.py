"""Other people's environments and rewards as this project's: Gymnasium, RLGym."""
