"""One cluster: its listeners, its merge window, and the worker that records what they see. ``keys`` makes it durable."""
