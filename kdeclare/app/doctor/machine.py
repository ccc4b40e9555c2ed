"""This machine: Python, and Java for what needs it."""

import platform
import sys
from collections.abc import Mapping

from kdeclare.app.doctor.problems import of_error
from kdeclare.core.diagnostics import KdeclareError
from kdeclare.report.doctor_views import Check, Section, Standing
from kdeclare.sandbox.java import installed_java
from kdeclare.version import VERSION

_JAVA_FOR = "kdeclare sandbox, and kdeclare fleet on Spark, alone"
_JAVAC_FOR = "kdeclare connect plugin alone"


def machine_section(environ: Mapping[str, str]) -> Section:
    """What is installed here."""
    python = f"{platform.python_version()} at {sys.executable}; kdeclare {VERSION}"
    return Section("This machine", (Check("Python", Standing.OK, python), *_java(environ)))


def _java(environ: Mapping[str, str]) -> tuple[Check, ...]:
    try:
        java = installed_java(environ)
        found = Check("Java", Standing.OK, f"{java.version} at {java.path}", _JAVA_FOR)
    except KdeclareError as problem:
        return (of_error("Java", Standing.WARNING, problem, _JAVA_FOR),)
    from kdeclare.providers.connect.client.plugin.build import find_javac

    try:
        return found, Check("Java compiler", Standing.OK, find_javac(environ, java.path), _JAVAC_FOR)
    except KdeclareError as problem:
        return found, of_error("Java compiler", Standing.WARNING, problem, _JAVAC_FOR)
