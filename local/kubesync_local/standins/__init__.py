"""Stand-ins for what kubesync talks to: a Kubernetes API server, Route 53 and DynamoDB. They know nothing of kubesync but its clock."""
