"""Execute plans: check expectations, schedule operations, write the journal, and recover and roll back runs.

This package never compares resources with manifests and never prompts users.
"""
