"""Rules without code: CEL expressions, and the manifests of kind Policy that hold them."""
