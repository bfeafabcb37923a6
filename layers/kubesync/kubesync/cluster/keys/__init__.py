"""Service keys of one cluster: what was seen becomes parts, outputs and claims, in fenced transactions (I1)."""
