"""What runs only on a person's machine: the kubesync command, the embedded AWS, the stand-in API server."""
