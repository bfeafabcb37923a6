"""What requests ask of the stored objects: get, list, watch and write."""
