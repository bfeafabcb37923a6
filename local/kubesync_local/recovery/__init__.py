"""Recovery: what a person takes over that stands in zones."""
