"""Secrets by reference: tokens and certificates."""
