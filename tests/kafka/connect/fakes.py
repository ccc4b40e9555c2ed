"""Classes with names that the plug-in knows, as another version of Connect might have them."""

import subprocess
from pathlib import Path

from kdeclare.java import find_java
from kdeclare.sandbox.connect_jars import ConnectJars

_SOURCES = {
    "org.eclipse.jetty.util.thread": "public class ShutdownThread { }",
    "org.eclipse.jetty.ee10.servlet": "public class ServletContextHandler { }",
}


def compile_fake_jetty(jars: ConnectJars, folder: Path) -> dict[str, bytes]:
    """Return the class files of a Jetty without the two ways to its server, by name in a jar."""
    classes, sources = folder / "classes", []
    for package, text in _SOURCES.items():
        source = folder / f"{text.split()[2]}.java"
        source.write_text(f"package {package};\n{text}\n")
        sources.append(str(source))
    javac = Path(find_java()).resolve().with_name("javac")
    command = [str(javac), "-proc:none", "-cp", jars.classpath, "-d", str(classes), *sources]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    return {p.relative_to(classes).as_posix(): p.read_bytes() for p in classes.rglob("*.class")}
