"""Packages that kdeclare requires: known vulnerabilities, and the software bill of materials (SBOM)."""
