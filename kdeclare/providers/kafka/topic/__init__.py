"""The kind `Topic`."""
