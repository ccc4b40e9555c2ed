"""Reports on a plan as text, Markdown and HTML."""
