"""Live state: how it is read, kept and waited for, and what systems answer where something fails."""
