"""Reports on a plan: text, Markdown, HTML page, risks, and the order of its operations."""
