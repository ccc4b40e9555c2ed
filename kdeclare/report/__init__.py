"""What people and scripts read: data in, text or JSON-able data out."""
