"""Format manifest files: order the fields, indent the lines, and remove needless blank lines."""
