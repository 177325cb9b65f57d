"""The store file: its tables, how it is opened, and what its errors mean."""

import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import quote

from langchain_agentmem.errors import (
    AgentMemoryError,
    ConfigurationError,
    CorruptStoreError,
    SchemaVersionError,
    StorageError,
)
from langchain_agentmem.stores._migrations import migrate
from langchain_agentmem.stores._namespaces import is_unicode

SCHEMA_VERSION: Final = 3
APPLICATION_ID: Final = 0x41474D31  # "AGM1"
UNIT_BITS: Final = 20
"""A unit (one indexed text) is numbered `item << UNIT_BITS | n`: no index from item to units."""

MISREAD: Final = (TypeError, ValueError, OverflowError, AttributeError, LookupError)
"""What Python raises when a column holds another type, size or range than was written."""
_EXPLAINED: Final = (sqlite3.Error, *MISREAD)
_RETRY_S: Final = 0.001
_MAX_NAME_BYTES: Final = 255 - len("-journal")  # SQLite puts files with such endings beside it

_TABLES: Final = """
CREATE TABLE meta(key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE namespaces(id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, scope TEXT NOT NULL);
CREATE TABLE items(
    id INTEGER PRIMARY KEY,
    namespace_id INTEGER NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    fields TEXT,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    change INTEGER NOT NULL,
    ttl_minutes REAL,
    expires_at INTEGER,
    checksum INTEGER,
    UNIQUE(namespace_id, key)
);
CREATE INDEX items_newest ON items(namespace_id, updated_at, seq, expires_at);
CREATE INDEX items_change ON items(change);
CREATE INDEX items_expiry ON items(expires_at) WHERE expires_at IS NOT NULL;
CREATE TABLE removed(change INTEGER PRIMARY KEY, item INTEGER NOT NULL, places BLOB);
CREATE TABLE units(id INTEGER PRIMARY KEY, digest BLOB NOT NULL, vector BLOB, terms TEXT NOT NULL);
CREATE VIRTUAL TABLE words USING fts5(
    terms, content='', detail=none,
    tokenize="unicode61 remove_diacritics 0 categories 'L* M* N* S* Co' tokenchars '_'"
);
INSERT INTO meta VALUES ('change', 0), ('pruned', 0), ('epoch', 0);
"""


class Database:
    """Connections to one file: one for writing, a pool for reading.

    In WAL mode readers never wait for the writer. A database in memory has one connection only,
    and its readers take the write lock.

    Args:
        path: The file, or `":memory:"`.
        synchronous: `"full"` or `"normal"`, as SQLite defines them for WAL.
        busy_timeout_s: Seconds to wait for another process's lock.
    """

    def __init__(self, path: str, *, synchronous: str, busy_timeout_s: float) -> None:
        self.path = path
        self.write_lock = threading.RLock()
        self.read_only = False
        self._synchronous = synchronous
        self._timeout = busy_timeout_s
        self._immutable = False
        self._writer: sqlite3.Connection | None = None
        self._idle: list[sqlite3.Connection] = []
        self._closed = False
        self._place: tuple[int, int] | None = None

    @property
    def in_memory(self) -> bool:
        """Whether the database lives in memory only."""
        return self.path == ":memory:"

    @property
    def writer(self) -> sqlite3.Connection:
        """The connection that writes; only for the holder of `write_lock`.

        Raises:
            StorageError: If the store is closed.
        """
        if self._writer is None:
            msg = f"The store {self.path} is closed; open a new FaissSqliteStore on it."
            raise StorageError(msg)
        return self._writer

    def open(self) -> None:
        """Open the file, create its tables if it is new, and check that it can be used.

        Raises:
            StorageError: If the file cannot be opened, or belongs to another program.
            SchemaVersionError: If a newer version of this package wrote it.
            CorruptStoreError: If it is not a sound database.
        """
        with self.write_lock, self.errors():
            if self._closed:
                _ = self.writer
            self._check_path()
            self._writer = self._prepared()
            self._place = self._found()

    def check_in_place(self) -> None:
        """Refuse to write to a file that was removed: all of it would end with the process.

        Raises:
            StorageError: If the file is gone, or another one lies in its place.
        """
        if self._found() != self._place:
            msg = (
                f"{self.path} was removed or replaced while it was open, so that nothing written "
                "now would be kept; close the store and open it anew."
            )
            raise StorageError(msg)

    def _found(self) -> tuple[int, int] | None:
        """Return what tells the file from another one in its place."""
        if self.in_memory:
            return None
        try:
            found = os.stat(self.path)  # noqa: PTH116 - before each write; a Path costs more
        except FileNotFoundError:
            return None
        return found.st_dev, found.st_ino

    def close(self) -> None:
        """Close all connections; readers still at work close theirs when they are done."""
        self._closed = True
        self.disconnect()

    def vacuum(self) -> None:
        """Rewrite the file without free pages and namespaces without items, and empty the log.

        Raises:
            StorageError: If readers kept the log in use for longer than `busy_timeout_s`.
        """
        with self.write_lock, self.errors():
            connection = self.writer
            self.patiently(connection, "BEGIN IMMEDIATE")
            try:
                _forget_namespaces(connection)
                connection.execute("INSERT INTO words(words) VALUES ('optimize')")
            finally:
                connection.execute("COMMIT")
            self.patiently(connection, "VACUUM")
            while self._idle:
                self._idle.pop().close()
            deadline = time.monotonic() + self._timeout
            while not self.checkpoint():
                if time.monotonic() > deadline:
                    msg = (
                        f"{self.path} was rewritten, but others read it for {self._timeout:g} s, "
                        "so its log still holds former content; end them and vacuum again."
                    )
                    raise StorageError(msg)
                time.sleep(_RETRY_S)

    def checkpoint(self) -> bool:
        """Move the log into the file and empty it; returns whether nobody's reading forbade it."""
        with self.write_lock, self.errors():
            try:
                row = self.writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            except sqlite3.OperationalError as err:
                if "locked" not in str(err):
                    raise
                return False
            return not row[0]

    def disconnect(self) -> None:
        """Close all connections; `open` may be called again unless the database is closed."""
        with self.write_lock:
            while self._idle:
                self._idle.pop().close()
            if self._writer is not None:
                self._writer.close()
                self._writer = None

    def reader(self) -> AbstractContextManager[sqlite3.Connection]:
        """Lend a connection whose statements all see one snapshot.

        Raises:
            CorruptStoreError: If what was read is not of the type or size that was written.
        """
        return self._alone() if self.in_memory else _Snapshot(self)

    @contextmanager
    def _alone(self) -> Iterator[sqlite3.Connection]:
        with self.write_lock, self.errors(), sound_values():
            yield self.writer

    def begin(self) -> sqlite3.Connection:
        """Begin a transaction for reading on a connection of the pool, to be ended by `end`."""
        _ = self.writer
        connection = self._borrow()
        try:
            connection.execute("BEGIN")
        except sqlite3.Error:
            self._give_back(connection)
            raise
        return connection

    def end(self, connection: sqlite3.Connection) -> None:
        """Give a connection back to the pool, its transaction ended."""
        try:
            if connection.in_transaction:
                connection.execute("COMMIT")
        finally:
            self._give_back(connection)

    @contextmanager
    def apart(self) -> Iterator[sqlite3.Connection]:
        """Lend a connection of its own, for what a reader's may not do."""
        if self.in_memory:
            with self.write_lock, self.errors():
                yield self.writer
            return
        with self.errors(), closing(self._connect()) as connection:
            yield connection

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Turn SQLite's errors into this package's."""
        try:
            yield
        except (sqlite3.Error, UnicodeDecodeError) as err:
            raise self.explain(err) from err

    def explain(self, error: Exception) -> StorageError:
        """Return the error of this package for one of SQLite's, or one that damage made."""
        if isinstance(error, sqlite3.Error):
            return translate(error, self.path, self._timeout)
        return contradiction()  # SQLite quotes what is damaged, so that even its message may fail

    def _borrow(self) -> sqlite3.Connection:
        try:
            return self._idle.pop()
        except IndexError:
            connection = self._connect()
            connection.execute("PRAGMA query_only = ON")
            return connection

    def _give_back(self, connection: sqlite3.Connection) -> None:
        if self._closed:
            connection.close()
        else:
            self._idle.append(connection)

    def _check_path(self) -> None:
        if self.in_memory:
            return
        path = Path(self.path)
        try:
            path.stat()
        except FileNotFoundError:
            pass
        except OSError as err:
            msg = f"{self.path[:200]} cannot be looked up ({err.strerror}); choose another path."
            raise StorageError(msg) from err
        if path.is_dir():
            msg = f"{self.path} is a directory; give the path of a file in it."
            raise StorageError(msg)
        if not path.exists():
            if not path.parent.is_dir():
                msg = f"{path.parent} does not exist; create the directory first."
                raise StorageError(msg)
            return
        if not os.access(path, os.R_OK):
            msg = f"{self.path} cannot be read; check its permissions."
            raise StorageError(msg)
        self.read_only = not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK))

    def _connect(self) -> sqlite3.Connection:
        if self.in_memory:
            target, uri = self.path, False
        else:
            mode = "ro" if self.read_only else "rwc"
            flag = "&immutable=1" if self._immutable else ""
            target, uri = f"file:{quote(self.path)}?mode={mode}{flag}", True
        return sqlite3.connect(
            target,
            uri=uri,
            timeout=self._timeout,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=256,
        )

    def _prepared(self) -> sqlite3.Connection:
        connection = self._connect()
        try:
            self._prepare(connection)
        except sqlite3.OperationalError as err:
            connection.close()
            if self._immutable or not self.read_only or "unable to open" not in str(err):
                raise
            self._check_log()
            # WAL needs a file beside the database, unless nobody is said to change it meanwhile.
            self._immutable = True
            return self._prepared()
        except BaseException:
            connection.close()
            raise
        return connection

    def _check_log(self) -> None:
        log = Path(f"{self.path}-wal")
        if log.exists() and log.stat().st_size:
            msg = (
                f"{self.path} lies in a directory that cannot be written, and {log.name} beside it "
                "holds changes that can only be read where it can. Copy both files to another "
                "directory, or open the store once with permission to write."
            )
            raise StorageError(msg)

    def patiently(self, connection: sqlite3.Connection, statement: str) -> None:
        """Run a statement that takes a lock, waiting for other processes to give it up.

        SQLite does not wait at all when a file is switched to WAL, and elsewhere it sleeps up to
        100 ms between attempts, in which another busy process can take the lock many times over.
        """
        deadline = time.monotonic() + self._timeout
        while True:
            try:
                connection.execute(statement)
            except sqlite3.OperationalError as err:
                if "locked" not in str(err) or time.monotonic() > deadline:
                    raise
                time.sleep(_RETRY_S)
            else:
                return

    def _prepare(self, connection: sqlite3.Connection) -> None:
        """Look before touching: a file that is not ours, or newer, stays as it is."""
        version = _version(connection, self.path)
        if self.read_only:
            if 0 < version < SCHEMA_VERSION:
                msg = (
                    f"{self.path} has schema version {version} and must be taken over to "
                    f"{SCHEMA_VERSION}; open it once where it can be written."
                )
                raise SchemaVersionError(msg)
            return
        if version == 0 and not self.in_memory:
            connection.execute("PRAGMA auto_vacuum = NONE")
        self.patiently(connection, "PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA synchronous = {self._synchronous}")
        connection.execute("PRAGMA secure_delete = ON")
        if version == 0:
            self.patiently(connection, "BEGIN IMMEDIATE")
            _create(connection)
        elif version < SCHEMA_VERSION:
            self.patiently(connection, "BEGIN IMMEDIATE")
            migrate(connection, SCHEMA_VERSION)
        connection.execute("PRAGMA busy_timeout = 0")  # from here on, `patiently` waits


class _Snapshot:
    """A database's reader while it is lent: a class, which costs less than a generator."""

    __slots__ = ("_connection", "_database")

    def __init__(self, database: Database) -> None:
        self._database = database

    def __enter__(self) -> sqlite3.Connection:
        try:
            self._connection = self._database.begin()
        except (sqlite3.Error, UnicodeDecodeError) as err:
            raise self._database.explain(err) from err
        return self._connection

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        try:
            self._database.end(self._connection)
        except sqlite3.Error as err:
            raise self._database.explain(err) from (error or err)
        if isinstance(error, _EXPLAINED) and not isinstance(error, AgentMemoryError):
            raise self._database.explain(error) from error


def check_path(path: object) -> str:
    """Return the absolute path of a store's file, before anything touches the disk.

    Connections are opened when they are needed, when the working directory may be another one.

    Raises:
        ConfigurationError: It is no path, or one that no file can have.
    """
    example = "give the path of a file, such as 'memory.sqlite', or ':memory:'"
    if not isinstance(path, str | os.PathLike):
        msg = f"path must be a string or a Path, not {path!r} ({type(path).__name__}); {example}."
        raise ConfigurationError(msg)
    text = str(path)
    if not text.strip() or text == ".":
        msg = f"path is empty; {example}."
        raise ConfigurationError(msg)
    if "\0" in text or not is_unicode(text):
        msg = f"path {text!r} has a NUL or a lone surrogate, which no name can hold; {example}."
        raise ConfigurationError(msg)
    name = Path(text).name
    if len(name.encode()) > _MAX_NAME_BYTES:
        msg = (
            f"The file name {name[:20]!r}... has {len(name.encode())} bytes; "
            f"give one of at most {_MAX_NAME_BYTES}."
        )
        raise ConfigurationError(msg)
    return text if text == ":memory:" else str(Path(text).absolute())


def _version(connection: sqlite3.Connection, path: str) -> int:
    """Return the schema version of a file, 0 for an empty one."""
    connection.execute("BEGIN")  # another process may be creating the tables right now
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    owner = int(connection.execute("PRAGMA application_id").fetchone()[0])
    tables = int(connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0])
    connection.execute("COMMIT")
    if owner != APPLICATION_ID and (tables or version):
        msg = f"{path} is an SQLite file of another program; choose another path."
        raise StorageError(msg)
    if version > SCHEMA_VERSION:
        msg = (
            f"{path} has schema version {version}, but this version of langchain-agentmem knows "
            f"{SCHEMA_VERSION} at most; upgrade the package. The file was not touched."
        )
        raise SchemaVersionError(msg)
    return version


def _create(connection: sqlite3.Connection) -> None:
    """Create the tables in an open transaction, unless another process was quicker."""
    try:
        if not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            for statement in _TABLES.strip().split(";\n"):
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _forget_namespaces(connection: sqlite3.Connection) -> None:
    """Remove the namespaces that neither hold an item nor lie above one."""
    rows = connection.execute(
        "SELECT scope FROM namespaces WHERE id IN (SELECT namespace_id FROM items)"
    )
    used = {word for (scope,) in rows for word in scope.split()}
    known = connection.execute("SELECT id FROM namespaces").fetchall()
    connection.executemany(
        "DELETE FROM namespaces WHERE id = ?",
        [(identity,) for (identity,) in known if f"_{identity}" not in used],
    )


def contradiction() -> CorruptStoreError:
    """Return the error of a file whose tables do not agree, as after damage from outside."""
    return CorruptStoreError(
        "The file's items and its index contradict each other; run 'agentmem doctor', which says "
        "what is damaged and with --repair makes the index anew."
    )


@contextmanager
def sound_values() -> Iterator[None]:
    """Turn what a value that is not the one written makes Python raise into our error."""
    try:
        yield
    except AgentMemoryError:
        raise
    except MISREAD as err:
        raise contradiction() from err


_NO_SPACE: Final = frozenset({"SQLITE_IOERR_SHMSIZE", "SQLITE_IOERR_WRITE"})
"""What SQLite also reports on a full disk, for the files beside the database."""


def translate(error: sqlite3.Error, path: str, timeout: float) -> StorageError:
    """Return the error of this package that says what an SQLite error means."""
    text = str(error)
    if any(sign in text for sign in ("not a database", "malformed", "Could not decode")):
        msg = f"{path} is not a sound SQLite database ({text}); restore it from a backup."
        return CorruptStoreError(msg)
    if "locked" in text or "busy" in text:
        msg = f"{path} stayed locked by another process for {timeout:g} s; raise busy_timeout_s."
        return StorageError(msg)
    if "readonly" in text:
        msg = (
            f"{path} is read-only, so nothing can be written; "
            "check the permissions of the file and of its directory."
        )
        return StorageError(msg)
    if "full" in text or getattr(error, "sqlite_errorname", "") in _NO_SPACE:
        msg = (
            f"{path} cannot grow because the disk is full; free some space. What was being written "
            "is not; what was written before is kept."
        )
        return StorageError(msg)
    if "unable to open" in text:
        msg = f"{path} cannot be opened; check that its directory exists and can be written."
        return StorageError(msg)
    msg = f"{path}: SQLite reports: {text}"
    return StorageError(msg)
