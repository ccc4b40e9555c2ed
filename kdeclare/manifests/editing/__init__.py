"""Edit manifest files so that only the intended fields change, and comments and layout are preserved.

An edit replaces characters of the file at the positions of the parsed YAML nodes. The edited file is parsed
again, and must differ from the original only by the intended change. Otherwise the edit is refused.
"""
