"""Edits of manifest files: only what is to change changes, comments and layout stay.

Text is spliced where the composed nodes say that their content stands; then the result is composed again and
must say what was wanted and differ in nothing else. What no splice can do that for is refused.
"""
