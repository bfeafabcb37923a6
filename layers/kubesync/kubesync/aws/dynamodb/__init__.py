"""DynamoDB: the port to it, its adapter, and the definitions of the tables."""
