"""The name and the hint of verdicts about changes that would take away kdeclare's own rights on ACLs."""

ACL_LOCKOUT = "acl-lockout"
"""The name of the guard in verdicts."""

LOCKOUT_HINT = (
    "Keep bindings that allow kdeclare ALTER and DESCRIBE on the cluster, apply as a different principal, or "
    "pass --allow-acl-lockout (the override is recorded)."
)
