"""DynamoDB: the port to it, its adapter, and the tables as they are made."""
