"""What makes a sandbox secure: TLS, logins, and rights by ACLs."""
