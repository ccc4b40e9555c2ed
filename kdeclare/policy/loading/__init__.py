"""Load the policies of a project, and report every way in which custom code can fail."""
