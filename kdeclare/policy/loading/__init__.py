"""Load the policies of a project, and report all failures of custom code."""
