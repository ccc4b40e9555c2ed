"""Wherever Spark can write as storage: S3, ADLS, GCS, HDFS, through Hadoop's file systems."""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any
from uuid import uuid4

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.frozen import dataclass
from kdeclare.fleet.spark.problems import causes, hide_passwords
from kdeclare.fleet.storage import Storage, cannot_read, cannot_write, folder_here

_WHOLE_OBJECTS = frozenset({"s3a", "s3", "s3n", "gs", "oss", "cosn", "obs"})
"""Where a file appears when it is closed, whole; a rename would copy it once more."""

_GONE = "java.io.FileNotFoundException"
_DENIED = re.compile(r"AccessControlException|AccessDeniedException|Status Code: 403|Permission denied")


def open_storage(location: str, spark: SparkSession) -> Storage:
    """The storage of a location: a path or ``file:`` URI is a folder here, any other URI is Hadoop's."""
    return folder_here(location) or HadoopStorage(spark, location.rstrip("/"))


@dataclass(frozen=True, slots=True)
class HadoopStorage:
    """A folder in one of Hadoop's file systems; see `Storage`. ``uri`` is without a slash at its end."""

    spark: SparkSession
    uri: str

    def exists(self, path: str) -> bool:
        """Whether there is a file or folder."""
        with self._told(path, cannot_read):
            return bool(self._fs().exists(self._at(path)))

    def names(self, path: str) -> tuple[str, ...]:
        """What is in a folder, sorted; hidden files, as of interrupted writers, are left out."""
        with self._told(path, cannot_read):
            try:
                found = [status.getPath().getName() for status in self._fs().listStatus(self._at(path))]
            except Py4JJavaError as problem:
                if _is(problem, _GONE):
                    return ()
                raise
        return tuple(sorted(name for name in found if not name.startswith(".")))

    def read(self, path: str) -> str:
        """The text of a file."""
        with self._told(path, cannot_read):
            stream = self._fs().open(self._at(path))
            try:
                data = bytes(stream.readAllBytes())
            finally:
                stream.close()
        try:
            return data.decode()
        except UnicodeDecodeError as cause:
            raise cannot_read(hide_passwords(f"{self.uri}/{path}"), "It is not UTF-8 text") from cause

    def write(self, path: str, text: str) -> None:
        """Write a file whole or not at all; replaces what is there."""
        self.write_all({path: text})

    def write_all(self, texts: Mapping[str, str]) -> None:
        """Write several files; nothing is replaced before all of it has been written, but for objects."""
        with self._told(next(iter(texts)) if len(texts) == 1 else "", cannot_write):
            if self._fs().getScheme() in _WHOLE_OBJECTS:
                for path, text in texts.items():
                    self._create(self._at(path), text.encode())
                return
            written = {path: self._beside(path) for path in texts}
            try:
                for path, fresh in written.items():
                    self._create(fresh, texts[path].encode())
                for path, fresh in written.items():
                    self._replace(fresh, self._at(path))
            except BaseException:
                for fresh in written.values():
                    self._fs().delete(fresh, False)
                raise

    def rename(self, path: str, to: str) -> None:
        """Move a folder to where nothing is yet."""
        source, target = self._at(path), self._at(to)
        fs = self._fs()
        with self._told(to, cannot_write):
            if fs.exists(target):
                raise cannot_write(hide_passwords(f"{self.uri}/{to}"), "File exists")
            if not fs.exists(source):
                raise cannot_write(hide_passwords(f"{self.uri}/{to}"), f"There is no {path}")
            fs.mkdirs(target.getParent())
            if not fs.rename(source, target):
                raise cannot_write(hide_passwords(f"{self.uri}/{to}"), "The file system does not say why")

    def remove(self, path: str) -> None:
        """Delete a file, or a folder with all in it; nothing if it is not there."""
        fs, gone = self._fs(), self._at(path)
        with self._told(path, cannot_write):
            if not fs.delete(gone, True) and fs.exists(gone):
                raise cannot_write(hide_passwords(f"{self.uri}/{path}"), "The file system does not say why")

    def remove_empty(self, path: str) -> None:
        """Delete a folder if nothing is in it."""
        with suppress(Py4JJavaError):  # another command is at work there
            self._fs().delete(self._at(path), False)

    def _beside(self, path: str) -> Any:
        target = self._at(path)
        return self._jvm().Path(target.getParent(), f".{target.getName()}.{uuid4().hex}.tmp")

    def _create(self, path: Any, data: bytes) -> None:
        """An object is not closed after a failed write: that would make half of it appear."""
        self._fs().mkdirs(path.getParent())
        stream = self._fs().create(path, True)
        stream.write(bytearray(data))
        stream.close()

    def _replace(self, fresh: Any, target: Any) -> None:
        """FileSystem's own rename does not replace files everywhere, FileContext's does."""
        hadoop = self._jvm()
        gateway: Any = self.spark.sparkContext._gateway
        kind = getattr(hadoop, "Options$Rename")
        options = gateway.new_array(kind, 1)
        options[0] = kind.OVERWRITE
        context = hadoop.FileContext.getFileContext(target.toUri(), self._configuration())
        context.rename(fresh, target, options)

    def _jvm(self) -> Any:
        jvm: Any = self.spark.sparkContext._jvm
        return jvm.org.apache.hadoop.fs

    def _configuration(self) -> Any:
        jsc: Any = self.spark.sparkContext._jsc
        return jsc.hadoopConfiguration()

    def _fs(self) -> Any:
        return self._jvm().Path(self.uri).getFileSystem(self._configuration())

    def _at(self, path: str) -> Any:
        return self._jvm().Path(f"{self.uri}/{path}" if path else self.uri)

    @contextmanager
    def _told(self, path: str, failure: Callable[[str, str], KdeclareError]) -> Iterator[None]:
        try:
            yield
        except Py4JJavaError as problem:
            raise failure(hide_passwords(f"{self.uri}/{path}"), _reason(problem)) from problem


def _is(problem: Py4JJavaError, kind: str) -> bool:
    return any(cause.kind == kind for cause in causes(problem))


def _reason(problem: Py4JJavaError) -> str:
    """Why, in the words that the command line knows from local files where there are such words."""
    told = [f"{cause.kind} {cause.message}" for cause in causes(problem)]
    text = "\n".join(told)
    if _DENIED.search(text):
        return "Permission denied"
    if _GONE in text:
        return "No such file or directory"
    for known in ("No space left on device", "Read-only file system", "File too large"):
        if known in text:
            return known
    last = causes(problem)[-1]
    return hide_passwords(" ".join(last.message.split()) or last.kind)
