"""Store snapshots and audits in S3, ADLS, GCS, HDFS and other Hadoop file systems."""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any
from uuid import uuid4

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.fleet.spark.spark_errors import list_causes, mask_uri_passwords
from kdeclare.fleet.tables.storage import (
    Storage,
    build_read_error,
    build_write_error,
    find_local_storage,
    is_visible,
)

_OBJECT_STORE_SCHEMES = frozenset({"s3a", "s3", "s3n", "gs", "oss", "cosn", "obs"})
"""The URI schemes of object stores.

In an object store, a file becomes visible atomically when it is closed. Files are therefore written directly,
because renaming a temporary file would copy it.
"""

_FILE_NOT_FOUND = "java.io.FileNotFoundException"
_DENIED = re.compile(r"AccessControlException|AccessDeniedException|Status Code: 403|Permission denied")


def open_storage(location: str, spark: SparkSession) -> Storage:
    """Return the storage for a location.

    location: a local path, a ``file:`` URI, or a URI that Hadoop supports. A Spark Connect session supports
        only local paths, see `settings.reject_remote_folders`.
    """
    return find_local_storage(location) or HadoopStorage(spark, location.rstrip("/"))


@dataclass(frozen=True, slots=True)
class HadoopStorage:
    """A folder in a file system that Hadoop supports; see `Storage`.

    uri: the URI of the folder, without a trailing slash.
    """

    spark: SparkSession
    uri: str

    def exists(self, path: str) -> bool:
        """Return whether a file or folder exists."""
        with self._translate_errors(path, build_read_error):
            return bool(self._get_file_system().exists(self._build_path(path)))

    @property
    def moves_folders(self) -> bool:
        """Whether the file system moves a folder in one step."""
        with self._translate_errors("", build_read_error):
            return self._get_file_system().getScheme() not in _OBJECT_STORE_SCHEMES

    def list_files(self, path: str) -> Mapping[str, int]:
        """Return the sizes of all files in a folder and its subfolders; see `Storage`."""
        with self._translate_errors(path, build_read_error):
            try:
                return dict(self._walk(self._build_path(path), ""))
            except Py4JJavaError as problem:
                if _is_caused_by(problem, _FILE_NOT_FOUND):
                    return {}
                raise

    def _walk(self, folder: Any, prefix: str) -> Iterator[tuple[str, int]]:
        for status in self._get_file_system().listStatus(folder):
            name = str(status.getPath().getName())
            if not is_visible(name):
                continue
            if status.isDirectory():
                yield from self._walk(status.getPath(), f"{prefix}{name}/")
            else:
                yield f"{prefix}{name}", int(status.getLen())

    def names(self, path: str) -> tuple[str, ...]:
        """Return the names of the files and folders in a folder, sorted. Hidden files are omitted."""
        with self._translate_errors(path, build_read_error):
            try:
                found = [
                    status.getPath().getName()
                    for status in self._get_file_system().listStatus(self._build_path(path))
                ]
            except Py4JJavaError as problem:
                if _is_caused_by(problem, _FILE_NOT_FOUND):
                    return ()
                raise
        return tuple(sorted(name for name in found if not name.startswith(".")))

    def read(self, path: str) -> str:
        """Return the contents of a text file."""
        with self._translate_errors(path, build_read_error):
            stream = self._get_file_system().open(self._build_path(path))
            try:
                data = bytes(stream.readAllBytes())
            finally:
                stream.close()
        try:
            return data.decode()
        except UnicodeDecodeError as cause:
            raise build_read_error(
                mask_uri_passwords(f"{self.uri}/{path}"), "the file is not UTF-8 text"
            ) from cause

    def write(self, path: str, text: str) -> None:
        """Write a file atomically. Replace an existing file."""
        self.write_all({path: text})

    def write_all(self, texts: Mapping[str, str]) -> None:
        """Write several files; see `Storage.write_all`."""
        with self._translate_errors(next(iter(texts)) if len(texts) == 1 else "", build_write_error):
            if self._get_file_system().getScheme() in _OBJECT_STORE_SCHEMES:
                for path, text in texts.items():
                    self._write_file(self._build_path(path), text.encode())
                return
            temporary_paths = {path: self._build_temporary_path(path) for path in texts}
            try:
                for path, temporary_path in temporary_paths.items():
                    self._write_file(temporary_path, texts[path].encode())
                for path, temporary_path in temporary_paths.items():
                    self._replace_file(temporary_path, self._build_path(path))
            except BaseException:
                for temporary_path in temporary_paths.values():
                    self._get_file_system().delete(temporary_path, False)
                raise

    def rename(self, path: str, to: str) -> None:
        """Move a folder to a path that does not exist yet."""
        source, target = self._build_path(path), self._build_path(to)
        fs = self._get_file_system()
        with self._translate_errors(to, build_write_error):
            if fs.exists(target):
                raise build_write_error(mask_uri_passwords(f"{self.uri}/{to}"), "File exists")
            if not fs.exists(source):
                raise build_write_error(mask_uri_passwords(f"{self.uri}/{to}"), f"{path} does not exist")
            fs.mkdirs(target.getParent())
            if not fs.rename(source, target):
                raise build_write_error(
                    mask_uri_passwords(f"{self.uri}/{to}"), "the file system did not report a reason"
                )

    def remove(self, path: str) -> None:
        """Delete a file, or a folder with its contents, if it exists."""
        fs, target = self._get_file_system(), self._build_path(path)
        with self._translate_errors(path, build_write_error):
            if not fs.delete(target, True) and fs.exists(target):
                raise build_write_error(
                    mask_uri_passwords(f"{self.uri}/{path}"), "the file system did not report a reason"
                )

    def remove_empty(self, path: str) -> None:
        """Delete a folder if it is empty."""
        with suppress(Py4JJavaError):  # another command is using the folder
            self._get_file_system().delete(self._build_path(path), False)

    def _build_temporary_path(self, path: str) -> Any:
        target = self._build_path(path)
        return self._get_hadoop_fs().Path(target.getParent(), f".{target.getName()}.{uuid4().hex}.tmp")

    def _write_file(self, path: Any, data: bytes) -> None:
        """Write a file directly, without a temporary file.

        If an error occurs, the stream is not closed, because closing it would publish an incomplete object.
        """
        self._get_file_system().mkdirs(path.getParent())
        stream = self._get_file_system().create(path, True)
        stream.write(bytearray(data))
        stream.close()

    def _replace_file(self, temporary_path: Any, target: Any) -> None:
        """Rename a file, and replace an existing file.

        The method uses ``FileContext``, because some implementations of ``FileSystem.rename`` do not replace
        files.
        """
        hadoop_fs = self._get_hadoop_fs()
        gateway: Any = self.spark.sparkContext._gateway
        rename_option = getattr(hadoop_fs, "Options$Rename")
        options = gateway.new_array(rename_option, 1)
        options[0] = rename_option.OVERWRITE
        context = hadoop_fs.FileContext.getFileContext(target.toUri(), self._get_configuration())
        context.rename(temporary_path, target, options)

    def _get_hadoop_fs(self) -> Any:
        jvm: Any = self.spark.sparkContext._jvm
        return jvm.org.apache.hadoop.fs

    def _get_configuration(self) -> Any:
        jsc: Any = self.spark.sparkContext._jsc
        return jsc.hadoopConfiguration()

    def _get_file_system(self) -> Any:
        return self._get_hadoop_fs().Path(self.uri).getFileSystem(self._get_configuration())

    def _build_path(self, path: str) -> Any:
        return self._get_hadoop_fs().Path(f"{self.uri}/{path}" if path else self.uri)

    @contextmanager
    def _translate_errors(
        self, path: str, build_error: Callable[[str, str], KdeclareError]
    ) -> Iterator[None]:
        try:
            yield
        except Py4JJavaError as problem:
            raise build_error(
                mask_uri_passwords(f"{self.uri}/{path}"), _explain_problem(problem)
            ) from problem


def _is_caused_by(problem: Py4JJavaError, kind: str) -> bool:
    return any(cause.kind == kind for cause in list_causes(problem))


def _explain_problem(problem: Py4JJavaError) -> str:
    """Return the reason for an error. Where possible, use the same words as for local files."""
    cause_texts = [f"{cause.kind} {cause.message}" for cause in list_causes(problem)]
    text = "\n".join(cause_texts)
    if _DENIED.search(text):
        return "Permission denied"
    if _FILE_NOT_FOUND in text:
        return "No such file or directory"
    for known_message in ("No space left on device", "Read-only file system", "File too large"):
        if known_message in text:
            return known_message
    root_cause = list_causes(problem)[-1]
    return mask_uri_passwords(" ".join(root_cause.message.split()) or root_cause.kind)
