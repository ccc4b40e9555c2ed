"""YAML files to desired resources, with positions and diagnostics."""
