"""Reports on a plan as text, Markdown and HTML, with its risks and the order of its operations."""
