"""Serialize messages as JSON, without secrets."""

import json

from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.secrets.scrubber import SCRUBBER


def dump_message(message: JsonValue, *, is_indented: bool = False) -> str:
    """Return the JSON of a message.

    Messages are sent in the compact form, so the size limits of receivers apply to this form. Secrets are
    removed from values, but not from keys, which are the same in all messages.

    is_indented: whether to return the indented form, which is easier to read.
    """
    scrubbed = SCRUBBER.scrub_json(message)
    if is_indented:
        return json.dumps(scrubbed, ensure_ascii=False, indent=1) + "\n"
    return json.dumps(scrubbed, ensure_ascii=False, separators=(",", ":"))
