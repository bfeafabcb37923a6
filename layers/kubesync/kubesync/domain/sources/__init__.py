"""The kinds of objects that keys stand for: how each is kept, what belongs to it, and what it leads to."""
