"""The workers' plug-in for dynamic configuration (KIP-1185): Java sources, build, installation."""

from kdeclare.cluster.connect.plugin.build import EXTENSION, build, jar_name
from kdeclare.cluster.connect.plugin.install import Installed, install

__all__ = ["EXTENSION", "Installed", "build", "install", "jar_name"]
