"""What the terminal shows, piece by piece."""
