"""The signals that ask a command to end."""

import signal

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Ctrl-C, the end of a CI job or a service, and the end of a terminal or an SSH connection."""


def is_ignored(number: signal.Signals) -> bool:
    """Whether the process was started with this signal ignored, as ``nohup`` ignores SIGHUP."""
    return signal.getsignal(number) is signal.SIG_IGN
