"""Reports for people and scripts. Functions take data and return text or JSON-able data."""
