"""kubesync keeps Route 53 and an upstream table in step with Kubernetes."""
