"""Reports for people and scripts. The functions return text, or data that can be written as JSON."""
