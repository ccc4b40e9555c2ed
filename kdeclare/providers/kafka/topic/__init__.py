"""Kind `Topic`."""
