"""What people see of an audit: sentences, tables, a page and pictures."""
