"""Policies that are CEL expressions, and manifests of kind Policy, which contain these expressions."""
