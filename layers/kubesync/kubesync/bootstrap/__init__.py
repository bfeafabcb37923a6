"""How a process of kubesync begins and ends: it builds all parts, and hears signals."""
