"""Pure values and decisions: no client, no clock, no log."""
