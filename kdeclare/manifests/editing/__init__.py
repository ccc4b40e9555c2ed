"""Edit manifest files so that only the intended fields change; comments and layout stay.

An edit replaces text at the positions of the parsed YAML nodes. The result is then parsed again and must
contain the intended change and no other difference. If this cannot be achieved, the edit is refused.
"""
