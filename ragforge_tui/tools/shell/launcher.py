"""Launcher of commands: confine the process, then run the command in it.

`confinement.py` decides how, `process.py` starts this file as a script of its own, because preexec_fn may deadlock in a
program with threads. It uses only the standard library, since it starts without site-packages:

    launcher.py PARENT LIFELINE HOW WORKSPACE [PATH…] -- PROGRAM [ARGUMENT…]

PARENT is the process whose death ends the command, LIFELINE a pipe that closes at its death, PATH a file or folder that
the command must not reach, after a sign: ``-`` or, for a folder that the command may use as an empty one, ``+``, or,
for a folder whose part WORKSPACE is reached all the same, ``=``. A PATH after ``*`` is one that the command may write
to, one after ``r`` one that it may not, although it is within such a one: if there is any of them, everything else is
read-only, and there is no network.

With namespaces there are three processes: this one has the process id that the engine knows, passes on how the command
ended, and ignores SIGTERM, which is for the command; the second one is the init process of the command's namespace,
with whose end the kernel ends all others; the third one becomes the command.
"""

import ctypes
import os
import select
import signal
import stat
import struct
import sys
from contextlib import suppress
from typing import NoReturn

NOT_CONFINED = 126
"""Exit status of a command that was not run because it could not be confined."""
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 1, 4, 24, 38
_CLONE_NEWNS, _CLONE_NEWUSER, _CLONE_NEWPID = 0x20000, 0x10000000, 0x20000000
_CLONE_NEWNET, _CLONE_NEWIPC = 0x40000000, 0x08000000
_MOUNT_SETATTR, _HERE, _AT_RECURSIVE, _ATTR_RDONLY = 442, -100, 0x8000, 1
_SET_FLAGS, _UP_AND_RUNNING = 0x8914, 0x41
"""Of a network interface."""
_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_REMOUNT = 1, 2, 4, 8, 32
_MS_BIND, _MS_REC, _MS_PRIVATE = 4096, 16384, 1 << 18
_MNT_DETACH = 2
_PLAIN = _MS_NOSUID | _MS_NODEV | _MS_NOEXEC
_CAP_SYS_ADMIN, _CAP_PERFMON = 21, 38
_CAPABILITY_VERSION = 0x20080522
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_ABI_OF_SCOPES, _SOCKETS, _SIGNALS = 6, 1, 2
"""From this version on, Landlock keeps connections to abstract sockets, and signals, within the command."""
_FILE_RIGHTS = 0b111 | 1 << 14 | 1 << 15
"""Landlock's rights on files: execute, write, read, truncate, ioctl on devices."""
_READ_FOLDER = 1 << 3
_RIGHTS_BY_ABI = (13, 14, 15, 15, 16)
"""Number of rights that each version of Landlock knows; all later ones know the last number."""

_END = struct.Struct("i?")
"""How the command ended, and whether other processes of it still run."""

_libc = ctypes.CDLL(None, use_errno=True)


def _call(function: str, *arguments: object) -> int:
    result = int(_libc[function](*arguments))
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{function}: {os.strerror(number)}")
    return result


def _mount(source: str, target: str, kind: str = "", flags: int = 0, data: str = "") -> None:
    try:
        _call("mount", source.encode(), os.fsencode(target), kind.encode(), ctypes.c_ulong(flags), data.encode())
    except OSError as error:
        raise OSError(error.errno, f"{error.strerror} ({target})") from None


def main() -> NoReturn:
    """Confine this process and run the command; without the confinement it is not run."""
    parent, lifeline, how, workspace = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
    end = sys.argv.index("--")
    paths, command = sys.argv[5:end], sys.argv[end + 1 :]
    try:
        if how == "init":
            _keep_sockets()
            _run_init(int(paths[0]), lifeline, workspace, command)
        _call("prctl", _PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            raise SystemExit(1)  # It died before the request took effect.
        if how in ("namespaces", "bwrap"):
            _supervise(how, lifeline, workspace, paths, command)
        if how == "landlock":
            _restrict(workspace, paths)
        _execute(command)
    except OSError as error:
        _refuse(error)


def _refuse(error: OSError) -> NoReturn:
    os.write(2, f"The command was not run, because it could not be confined: {error.strerror}.\n".encode())
    os._exit(NOT_CONFINED)


def _execute(command: list[str]) -> NoReturn:
    # Python ignores the last two, and this process the others.
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    os.execv(command[0], command)


def _supervise(how: str, lifeline: int, workspace: str, paths: list[str], command: list[str]) -> NoReturn:
    """Run the command in namespaces, and end as it ended."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    reading, writing = os.pipe()
    if how == "namespaces":
        _enter_namespaces(_CLONE_NEWNET | _CLONE_NEWIPC if _is_sealed(paths) else 0)
    init = os.fork()
    if init == 0:
        try:
            if how == "bwrap":
                _execute_bubblewrap(writing, lifeline, workspace, paths, command)
            _call("prctl", _PR_SET_PDEATHSIG, 0, 0, 0, 0)
            _cover(workspace, paths)
            _seal(paths)
            _own_processes()
            _run_init(writing, lifeline, workspace, command)
        except OSError as error:
            _refuse(error)
    os.close(writing)
    told = os.read(reading, _END.size)
    status, others = _END.unpack(told) if told else (None, False)
    if not others:
        _, own = os.waitpid(init, 0)
        status = own if status is None else status
    if os.WIFSIGNALED(status):
        _call("prctl", _PR_SET_DUMPABLE, 0, 0, 0, 0)  # no second core
        with suppress(OSError):  # SIGKILL has no handler
            signal.signal(os.WTERMSIG(status), signal.SIG_DFL)
        os.kill(os.getpid(), os.WTERMSIG(status))
    os._exit(os.waitstatus_to_exitcode(status))


def _enter_namespaces(more: int) -> None:
    """Enter new namespaces in which all users stay who they are, and those of which `more` has the flags."""
    user, group = os.geteuid(), os.getegid()
    ready, start = os.pipe()
    helper = os.fork()
    if helper == 0:
        # Only a process outside may map more than one user, which root's commands need (apt, chown).
        os.read(ready, 1)
        try:
            of = f"/proc/{os.getppid()}"
            if user != 0:
                _write(f"{of}/setgroups", "deny")
            _write(f"{of}/uid_map", f"{user} {user} 1" if user else _identity("/proc/self/uid_map"))
            _write(f"{of}/gid_map", f"{group} {group} 1" if user else _identity("/proc/self/gid_map"))
        except OSError:
            os._exit(1)
        os._exit(0)
    try:
        _call("unshare", _CLONE_NEWUSER | _CLONE_NEWNS | _CLONE_NEWPID | more)
    finally:
        os.write(start, b"x")
        _, status = os.waitpid(helper, 0)
    if status:
        raise OSError(1, "the users cannot be mapped")


def _identity(path: str) -> str:
    """Return a map that keeps all users of the map that a file holds."""
    with open(path, encoding="ascii") as file:  # noqa: PTH123  # pathlib takes longer to import than all else
        rows = [line.split() for line in file]
    return "\n".join(f"{first} {first} {count}" for first, _, count in rows)


def _write(path: str, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY)
    os.write(descriptor, text.encode())
    os.close(descriptor)


def _is_sealed(paths: list[str]) -> bool:
    return any(marked[0] in "*r" for marked in paths)


def _cover(workspace: str, paths: list[str]) -> None:
    """Mount something empty over each path."""
    _mount("", "/", flags=_MS_REC | _MS_PRIVATE)
    _cover_files([marked[1:] for marked in paths if marked[0] not in "*r"])
    kept = os.open(workspace, os.O_PATH)
    for marked in sorted(paths, key=len):
        sign, path = marked[0], marked[1:]
        if sign in "*r" or not os.path.isdir(path):  # noqa: PTH112  # a file, covered already, or ended meanwhile
            continue
        _mount("tmpfs", path, "tmpfs", _PLAIN, "mode=0700" if sign == "+" else "mode=0555,size=64k")
        if sign == "=":
            os.makedirs(workspace)  # noqa: PTH103
            _mount(f"/proc/self/fd/{kept}", workspace, flags=_MS_BIND | _MS_REC)
        if sign != "+":
            _mount("", path, flags=_MS_REMOUNT | _MS_RDONLY | _PLAIN)
    os.close(kept)


def _cover_files(paths: list[str]) -> None:
    """Mount something without content over each path that is no folder.

    It has the size and the time of what it hides, so that to git the file is the same one, neither gone nor emptied.
    The files are made in a file system over /proc, where nothing is that has to be hidden.
    """
    _mount("tmpfs", "/proc", "tmpfs", _PLAIN, "mode=0700")
    for number, path in enumerate(paths):
        try:
            found = os.lstat(path)
        except OSError:
            continue
        if stat.S_ISDIR(found.st_mode) or stat.S_ISLNK(found.st_mode):
            continue
        empty = f"/proc/{number}"
        descriptor = os.open(empty, os.O_WRONLY | os.O_CREAT, found.st_mode & 0o111)
        os.ftruncate(descriptor, found.st_size if stat.S_ISREG(found.st_mode) else 0)
        os.close(descriptor)
        os.utime(empty, ns=(found.st_atime_ns, found.st_mtime_ns))
        with suppress(FileNotFoundError):  # It ended meanwhile.
            _mount(empty, path, flags=_MS_BIND)
    _mount("", "/proc", flags=_MS_REMOUNT | _MS_RDONLY | _PLAIN)
    _call("umount2", b"/proc", _MNT_DETACH)


def _seal(paths: list[str]) -> None:
    """Make everything read-only except some folders, and the loopback interface the only one."""
    if not _is_sealed(paths):
        return
    bound = sorted((marked for marked in paths if marked[0] in "*r"), key=len)
    for marked in bound:
        _mount(marked[1:], marked[1:], flags=_MS_BIND | _MS_REC)
    _set_attributes("/", _AT_RECURSIVE, _ATTR_RDONLY, 0)
    for marked in bound:
        if marked[0] == "*":
            _set_attributes(marked[1:], 0, 0, _ATTR_RDONLY)
    import fcntl
    import socket

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SET_FLAGS, struct.pack("16sh14x", b"lo", _UP_AND_RUNNING))


def _set_attributes(path: str, flags: int, on: int, off: int) -> None:
    attributes = struct.pack("QQQQ", on, off, 0, 0)
    size = ctypes.c_size_t(len(attributes))
    _call("syscall", _MOUNT_SETATTR, _HERE, os.fsencode(path), flags, attributes, size)


def _own_processes() -> None:
    """Show only the command's own processes and terminals; called by the init process."""
    _mount("proc", "/proc", "proc", _PLAIN)
    _keep_sockets()
    with suppress(OSError):  # No pseudo-terminals here, so none of the user's either.
        _mount("devpts", "/dev/pts", "devpts", _MS_NOSUID | _MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620")
        _mount("/dev/pts/ptmx", "/dev/ptmx", flags=_MS_BIND)
    if os.geteuid() == 0:
        # The kernel compares only the user id there, and some of these name programs that it runs outside.
        _mount("/proc/sys", "/proc/sys", flags=_MS_BIND | _MS_REC)
        _mount("", "/proc/sys", flags=_MS_BIND | _MS_REMOUNT | _MS_RDONLY | _PLAIN)
    _drop_capabilities(_CAP_SYS_ADMIN)  # Without it nobody can unmount.


def _drop_capabilities(*numbers: int) -> None:
    """Take capabilities from this process and its children for good; root's programs do not get them back."""
    header = struct.pack("Ii", _CAPABILITY_VERSION, 0)
    sets = ctypes.create_string_buffer(24)
    _call("capget", header, sets)
    words = list(struct.unpack("6I", sets))
    for number in numbers:
        _libc.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0)  # Fails where there is none to drop.
        first = number // 32 * 3
        for index in range(first, first + 3):
            words[index] &= ~(1 << number % 32)
    _call("capset", header, struct.pack("6I", *words))


def _run_init(result: int, lifeline: int, workspace: str, command: list[str]) -> NoReturn:
    """Start the command, collect every process that ends, write how the command ended; end with the last of them."""
    try:
        os.chdir(workspace)
    except OSError as error:
        raise OSError(error.errno, f"{error.strerror} ({workspace})") from None
    os.set_inheritable(result, False)
    os.set_inheritable(lifeline, False)
    woken, wake = os.pipe()
    for end in (woken, wake):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    child = os.fork()
    if child == 0:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        try:
            _execute(command)
        except OSError as error:
            os.write(2, f"{command[0]}: {error.strerror}\n".encode())
            os._exit(127)
    for number in (0, 1, 2):  # The output ends with the last process of the command.
        os.close(number)
    poll = select.poll()
    poll.register(woken, select.POLLIN)
    poll.register(lifeline, select.POLLIN)
    ended: int | None = None
    told = False
    while True:
        if any(descriptor == lifeline for descriptor, _ in poll.poll()):
            os._exit(1)
        with suppress(BlockingIOError):
            os.read(woken, 4096)
        others = True
        try:
            while (found := os.waitpid(-1, os.WNOHANG))[0]:
                if found[0] == child:
                    ended = found[1]
        except ChildProcessError:
            others = False
        if ended is not None and not told:
            told = True
            os.write(result, _END.pack(ended, others))
        if not others:
            os._exit(0)


def _execute_bubblewrap(writing: int, lifeline: int, workspace: str, paths: list[str], command: list[str]) -> NoReturn:
    """Let bubblewrap do what `_enter_namespaces`, `_cover` and `_own_processes` do; its init process is this file."""
    for descriptor in (writing, lifeline):
        os.set_inheritable(descriptor, True)
    bound = sorted((marked for marked in paths if marked[0] in "*r"), key=len)
    options = ["--unshare-user", "--unshare-pid", "--as-pid-1"]
    options += (
        ["--unshare-net", "--unshare-ipc", "--ro-bind", "/", "/", "--dev-bind", "/dev", "/dev"]
        if bound
        else ["--dev-bind", "/", "/"]
    )
    for marked in bound:
        options += ["--bind" if marked[0] == "*" else "--ro-bind", marked[1:], marked[1:]]
    options += ["--proc", "/proc"]
    options += ["--cap-drop", "CAP_SYS_ADMIN"]
    if os.geteuid() == 0:
        options += ["--ro-bind", "/proc/sys", "/proc/sys"]
    for marked in sorted(paths, key=len):
        sign, path = marked[0], marked[1:]
        if sign in "*r":
            continue
        if not os.path.isdir(path):  # noqa: PTH112
            options += ["--ro-bind", "/dev/null", path]
            continue
        options += ["--perms", "0700" if sign == "+" else "0555", "--tmpfs", path]
        options += ["--bind", workspace, workspace] if sign == "=" else []
        options += ["--remount-ro", path] if sign != "+" else []
    this = [sys.executable, "-I", "-S", __file__, "0", str(lifeline), "init", workspace, str(writing), "--", *command]
    os.execvp("bwrap", ["bwrap", *options, "--", *this])


def _restrict(workspace: str, paths: list[str]) -> None:
    """Forbid this process and its children, by Landlock, to open what is at the paths.

    Landlock allows and never forbids, and what it allows of a folder it allows of everything below. So everything next
    to a path is allowed, up to the root; in the folders above the paths nothing can be made or removed.
    """
    abi = _call("syscall", _CREATE_RULESET, None, ctypes.c_size_t(0), 1)
    rights = (1 << _RIGHTS_BY_ABI[min(abi, len(_RIGHTS_BY_ABI)) - 1]) - 1
    scoped = abi >= _ABI_OF_SCOPES
    ruleset = _ruleset(rights, _SOCKETS | _SIGNALS if scoped else 0, 24 if scoped else 8)
    hidden = {marked[1:] for marked in paths if marked[0] != "+"}
    above = {folder for path in hidden for folder in _above(path)}
    _allow(ruleset, "/", rights & _READ_FOLDER)
    if any(marked[0] == "=" for marked in paths):
        _allow(ruleset, workspace, rights)
    for folder in above:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.path not in above and entry.path not in hidden:
                    _allow(ruleset, entry.path, rights)
    if os.geteuid() == 0:
        _drop_capabilities(_CAP_SYS_ADMIN, _CAP_PERFMON)  # Either reads the memory of any process.
    _call("prctl", _PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    _obey(ruleset)


def _keep_sockets() -> None:
    """Keep connections to abstract sockets, such as that of an X server, within the command; older kernels cannot."""
    with suppress(OSError):
        _obey(_ruleset(0, _SOCKETS))


def _ruleset(rights: int, scoped: int, size: int = 24) -> int:
    attributes = struct.pack("QQQ", rights, 0, scoped)
    return _call("syscall", _CREATE_RULESET, attributes, ctypes.c_size_t(size), 0)


def _obey(ruleset: int) -> None:
    _call("syscall", _RESTRICT_SELF, ruleset, 0)
    os.close(ruleset)


def _above(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:count]) or "/" for count in range(1, len(parts))]


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:  # not to be reached in any case
        return
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISLNK(mode):  # a link's target has a rule of its own
        allowed = rights if stat.S_ISDIR(mode) else rights & _FILE_RIGHTS
        _call("syscall", _ADD_RULE, ruleset, 1, struct.pack("=Qi", allowed, descriptor), 0)
    os.close(descriptor)


if __name__ == "__main__":
    main()
