"""What policies evaluate: requests, the fields of resources, and the capabilities of kinds."""
