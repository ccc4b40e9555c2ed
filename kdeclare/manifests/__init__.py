"""Turn YAML files into desired resources, with source positions and diagnostics."""
