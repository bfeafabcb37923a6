"""What ``kubesync run`` is made of: sessions in a loop, and what a container's surroundings ask of it."""
