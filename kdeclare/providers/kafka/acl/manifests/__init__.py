"""Conversion between ACL bindings and `Acl` manifests."""
