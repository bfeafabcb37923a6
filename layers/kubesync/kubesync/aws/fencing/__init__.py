"""Raises the fences of a master, and checks them in every transaction (I2)."""
