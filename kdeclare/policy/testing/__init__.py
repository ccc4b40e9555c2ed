"""Test cases for policies, and their execution."""
