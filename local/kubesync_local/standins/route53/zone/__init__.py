"""Hosted zones, and the rules that a change batch must keep."""
