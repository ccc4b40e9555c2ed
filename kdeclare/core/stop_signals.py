"""The signals that request the end of a command."""

import signal

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""The signals for Ctrl-C, for the end of a CI job or service, and for a closed terminal or SSH connection."""


def is_ignored(number: signal.Signals) -> bool:
    """Whether the process was started with this signal ignored, for example SIGHUP by ``nohup``."""
    return signal.getsignal(number) is signal.SIG_IGN
