"""Building blocks of all reports: values in words, tables, colors, diagnostics, Markdown, HTML pages."""
