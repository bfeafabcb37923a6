"""Claims on names: who has one, who waits for it, and what a namespace may ask for."""
