"""Load the policies of a project, and report errors in custom code."""
