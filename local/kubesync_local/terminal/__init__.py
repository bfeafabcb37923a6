"""How commands answer people and programs: tables, JSON, remarks and logs."""
