"""What commands know of each kind of objects: options, words, and why a record set of one is not wanted."""
