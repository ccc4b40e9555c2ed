"""Load the policies of a project, and report the failures of custom code."""
