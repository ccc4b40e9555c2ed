"""Measure plans and changes of thousands of schemas in a schema registry."""
