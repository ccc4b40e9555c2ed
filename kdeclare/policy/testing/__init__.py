"""Load and run test cases for policies."""
