"""Print the body of a request to Azure DevOps that writes the text on stdin into a comment.

    python3 body.py thread|comment

A new thread is closed, because it needs no answer: open threads can block a merge.
"""

import json
import sys
from typing import Any

_LONGEST = 140_000
"""Azure DevOps accepts comments of up to 150,000 characters."""


def build_body(sort: str, text: str) -> dict[str, Any]:
    """Return the body of the request."""
    if len(text) > _LONGEST:
        text = text[:_LONGEST] + "\n\n… The plan is longer. See the log of the build.\n"
    if sort == "comment":
        return {"content": text}
    return {"comments": [{"parentCommentId": 0, "content": text, "commentType": 1}], "status": 4}


if __name__ == "__main__":
    print(json.dumps(build_body(sys.argv[1], sys.stdin.read())))
