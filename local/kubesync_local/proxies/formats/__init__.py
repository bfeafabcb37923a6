"""How each proxy writes an upstream. Pure: servers to text."""
