"""The kind `ScramUser`: SCRAM credentials of users (KIP-554)."""
