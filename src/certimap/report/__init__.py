"""What users read: the log table."""
