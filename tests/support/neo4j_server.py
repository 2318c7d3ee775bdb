"""A real Neo4j Community for tests, CI and benchmarks, made of its jars: no container, no installation.

``python -m tests.support.neo4j_server --fetch`` gets the jars (mvn), ``--run`` starts a server and prints where.
The server ends with the process that started it, however that ends: it watches its standard input.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from neo4j import GraphDatabase
from neo4j.exceptions import DriverError

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parent.parent
START_TIMEOUT = 120.0
JAVA_OPTIONS = [
    "-Xmx512m",
    "-XX:+UseSerialGC",
    # It lives for minutes: optimising its code would cost more than it saves.
    "-XX:TieredStopAtLevel=1",
    "-XX:-UsePerfData",
    *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in ("java.nio", "java.io", "sun.nio.ch")),
]


class Neo4jMissingError(Exception):
    """No Neo4j can be had here; says why."""


def jar_folder() -> Path:
    """Where the jars are, or go: $RAGFORGE_TEST_NEO4J_LIB, else .build/neo4j of the repository."""
    return Path(os.environ.get("RAGFORGE_TEST_NEO4J_LIB") or REPOSITORY / ".build" / "neo4j")


def ensure_jars() -> Path:
    """The folder with the jars, fetched when they are not there.

    Raises:
        Neo4jMissingError: They are not there and cannot be fetched.
    """
    if shutil.which("java") is None:
        raise Neo4jMissingError("java (17 or newer) is not installed")
    folder = jar_folder()
    if any(folder.glob("neo4j-kernel-5*.jar")):
        return folder
    if shutil.which("mvn") is None:
        raise Neo4jMissingError(f"no jars in {folder} and mvn is not installed to fetch them")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the workers of one test run ask at the same time
        if not any(folder.glob("neo4j-kernel-5*.jar")):
            _fetch(folder)
    return folder


def _fetch(folder: Path) -> None:
    partial = folder.with_name(f"{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    arguments = ["-q", "-B", "-f", str(HERE / "pom.xml"), "dependency:copy-dependencies"]
    arguments += ["-DincludeScope=runtime", f"-DoutputDirectory={partial}"]
    done = subprocess.run(["mvn", *arguments], capture_output=True, text=True, timeout=600, check=False)
    if done.returncode != 0:
        raise Neo4jMissingError(f"mvn could not fetch the jars: {(done.stdout + done.stderr).strip()[-500:]}")
    shutil.rmtree(folder, ignore_errors=True)
    partial.rename(folder)


class Neo4jServer:
    """One server on loopback with data of its own; start() and stop(), or a with statement."""

    username = "neo4j"
    password = "correct horse battery staple"

    def __init__(self, home: Path, port: int = 0) -> None:
        self.home = home
        self.port = port or _free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def uri(self) -> str:
        """Its Bolt address."""
        return f"bolt://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it and wait until it lets us in.

        Raises:
            Neo4jMissingError: There are no jars.
            RuntimeError: It did not start.
        """
        jars = ensure_jars()
        self.home.mkdir(parents=True, exist_ok=True)
        log = self.home / "neo4j-server.log"
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                [
                    "java",
                    *JAVA_OPTIONS,
                    "-cp",
                    f"{jars}/*",
                    str(HERE / "Neo4jServer.java"),
                    str(self.home),
                    str(self.port),
                ],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        end = time.monotonic() + START_TIMEOUT
        while not self._lets_in():
            if self._process.poll() is not None or time.monotonic() > end:
                self.stop()
                raise RuntimeError(f"Neo4j did not start: {log.read_text(errors='replace')[-2000:]}")
            time.sleep(0.2)

    def kill(self) -> None:
        """kill -9."""
        if self._process:
            self._process.kill()
            self._process.wait()

    def stop(self) -> None:
        """End it."""
        if self._process and self._process.stdin:
            self._process.stdin.close()
            try:
                self._process.wait(30)
            except subprocess.TimeoutExpired:
                self.kill()

    def __enter__(self) -> Neo4jServer:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _lets_in(self) -> bool:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", self.port)) != 0:
                return False
        try:
            with GraphDatabase.driver(self.uri, auth=(self.username, self.password)) as driver:
                driver.execute_query("RETURN 1")
            return True
        except DriverError:
            return False
        except Exception as error:  # a new server still has its first password
            return "Security" in str(getattr(error, "code", "")) and self._set_password()

    def _set_password(self) -> bool:
        with GraphDatabase.driver(self.uri, auth=(self.username, "neo4j")) as driver:
            statement = "ALTER CURRENT USER SET PASSWORD FROM 'neo4j' TO $new"
            driver.execute_query(statement, new=self.password, database_="system")
        return False  # look again


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def main() -> int:
    """Entry point: fetch the jars, or run a server until the input ends."""
    parser = argparse.ArgumentParser(prog="tests.support.neo4j_server", description=__doc__)
    parser.add_argument("--fetch", action="store_true", help="get the jars and end")
    parser.add_argument("--run", action="store_true", help="run a server with empty data until the input ends")
    parser.add_argument("--port", type=int, default=0)
    options = parser.parse_args()
    try:
        sys.stdout.write(f"jars: {ensure_jars()}\n")
    except Neo4jMissingError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    if options.run:
        with tempfile.TemporaryDirectory() as home, Neo4jServer(Path(home), options.port) as server:
            sys.stdout.write(f"NEO4J_URI={server.uri} NEO4J_PASSWORD='{server.password}'\n")
            sys.stdout.flush()
            sys.stdin.read()
    return 0


if __name__ == "__main__":
    sys.exit(main())
