"""Policies without code: CEL expressions, and the manifests of kind Policy that contain these expressions."""
