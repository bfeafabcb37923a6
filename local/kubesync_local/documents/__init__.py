"""The JSON documents that commands answer with, made from tables and zones. Nothing here prints."""
