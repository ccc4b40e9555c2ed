"""Consumer groups: their committed offsets, offset resets, and the operations that change groups."""
