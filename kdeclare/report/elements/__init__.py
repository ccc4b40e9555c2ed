"""Building blocks of reports: values, tables, colors, diagnostics, Markdown and HTML pages."""
