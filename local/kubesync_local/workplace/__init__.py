"""What every command works with: settings, AWS clients, tables, and access to clusters."""
