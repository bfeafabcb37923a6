"""The Kubernetes side: transport, credentials, reflector and wire models."""
