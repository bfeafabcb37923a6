"""What runs in the stand-in cluster: deployments, pods, the endpoints controller, and the demo's story."""
