"""Numbers that people see."""
