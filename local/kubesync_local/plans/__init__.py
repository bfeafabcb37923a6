"""Plans: what a command would do, for people to read before it is done."""
