"""The workers' plug-in as a person asks for it."""

from collections.abc import Callable
from pathlib import Path

from kdeclare.providers.connect.client.plugin.jar import OPEN, Installed
from kdeclare.sandbox.connect_plugin import build, install

__all__ = ["OPEN", "build_plugin", "install_plugin"]

Progress = Callable[[str], None]


def build_plugin(out: Path, progress: Progress) -> Path:
    """Compile it into a jar in that folder; the jar's path. Raises KdeclareError."""
    return build(out.expanduser().absolute(), progress)


def install_plugin(plugin_path: Path, progress: Progress) -> Installed:
    """Compile it and put it into that folder of plugin.path. Raises KdeclareError."""
    return install(plugin_path, progress)
