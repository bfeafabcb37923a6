"""One cluster: its listeners, its merge window, and the actor that records what they see. ``keys`` makes it durable."""
