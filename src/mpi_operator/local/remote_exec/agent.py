"""What `mpirun` calls instead of ssh: runs a command in another pod, and waits for it.

    agent SOCKET [options] HOST [options] COMMAND…
    agent SOCKET --rank PROGRAM ARGUMENTS…     (only without namespaces, see `stand_ins`)
    agent SOCKET --input PROGRAM ARGUMENTS…    becomes the program, which reads the job's input

It passes its own input and outputs to the node (as descriptors over the socket), so nothing is
copied on the way; then it forwards signals, and exits with the exit code of the command. When it
is killed the node reads the end of the socket, and kills the command.

This file is a program of its own and imports next to nothing: one is started per host, and the
public `socket` and `signal` would triple the 12 ms that takes.

    request   4 bytes: length · fields between NULs · descriptors 0, 1, 2; then a byte per signal
                  run HOST COMMAND
                  rank DIRECTORY COUNT WORDS… VARIABLES…
                  input
    answer    a byte (the exit code), then a sentence for stderr, if any
              to `input`: a byte with a descriptor
"""

import os
import sys
from _socket import AF_UNIX, CMSG_LEN, SCM_RIGHTS, SOCK_STREAM, SOL_SOCKET, socket

TYPE_CHECKING = False  # `typing` has it too, and costs more than the rest of this file
if TYPE_CHECKING:
    from signal import SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, signal
else:
    from _signal import SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, signal

_FAILED = 255  # the exit code of ssh when ssh itself fails
_NUL = b"\0"
# Letters of ssh's options that take a value; rsh's are among them.
_WITH_VALUE = "BbcDEeFIiJLlmOopQRSWw"


def parse(arguments: list[str]) -> tuple[str, str]:
    """The host and the command; options of ssh are ignored.

    They may come after the host too, as in `ssh HOST -p 22 true`, which is what horovodrun writes.
    """
    rest = _without_options(arguments)
    if not rest:
        raise ValueError("no host given")
    host, *rest = rest
    return host.rpartition("@")[2], " ".join(_without_options(rest))


def _without_options(words: list[str]) -> list[str]:
    rest = list(words)
    while rest and rest[0].startswith("-") and len(rest[0]) > 1:
        option = rest.pop(0)
        if option == "--":
            break
        if _takes_next(option):
            del rest[:1]
    return rest


def _takes_next(option: str) -> bool:
    """Whether the next word belongs to an option: -o X=Y, -qp 22, but not -p22 or --verbose."""
    if option.startswith("--"):
        return False
    letters = option[1:]
    for index, letter in enumerate(letters):
        if letter in _WITH_VALUE:
            return index == len(letters) - 1
    return False


def main(arguments: list[str]) -> int:
    """Run the command; its exit code."""
    address, *words = arguments
    if words[:1] == ["--input"]:
        return become(address, words[1:])
    _open_standard_descriptors()
    try:
        request = _rank(words[1:]) if words[:1] == ["--rank"] else ["run", *parse(words)]
        node = connect(address)
        ask(node, request)
    except (OSError, ValueError) as error:
        return fail(f"mpi-operator: {error}")
    for number in (SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2):
        signal(number, lambda number, _: _forward(node, number))
    return answer(node)


def _open_standard_descriptors() -> None:
    """Open those that are closed as /dev/null: only open descriptors can be sent."""
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free number


def connect(address: str) -> socket:
    """A connection to the server of a pod."""
    node = socket(AF_UNIX, SOCK_STREAM, 0)
    # From its own directory, because the address of a socket may have no more than 107 characters.
    os.chdir(os.path.dirname(address))
    node.connect(os.path.basename(address))
    return node


def become(address: str, words: list[str]) -> int:
    """Turn into a program that reads the job's input. Returns only if that is not possible."""
    place = os.getcwd()
    try:
        _open_standard_descriptors()
        node = connect(address)
        ask(node, ["input"])
        _, ancillary, _, _ = node.recvmsg(1, CMSG_LEN(4))
        for _, _, data in ancillary:
            given = int.from_bytes(data[:4], sys.byteorder)
            os.dup2(given, 0)
            os.close(given)
        node.close()
        os.chdir(place)
        os.execvp(words[0], words)  # noqa: S606
    except OSError as error:
        return fail(f"mpi-operator: {words[0]}: {error}")


def _rank(words: list[str]) -> list[str]:
    variables = (f"{name}={value}" for name, value in os.environ.items())
    return ["rank", os.getcwd(), str(len(words)), *words, *variables]


def ask(node: socket, fields: list[str], stdio: tuple[int, int, int] = (0, 1, 2)) -> None:
    """Send a request with the input and outputs of its command."""
    request = _NUL.join(map(os.fsencode, fields))
    data = len(request).to_bytes(4, "big") + request
    descriptors = b"".join(number.to_bytes(4, sys.byteorder) for number in stdio)
    sent = node.sendmsg([data], [(SOL_SOCKET, SCM_RIGHTS, descriptors)])
    if sent < len(data):
        node.sendall(data[sent:])


def _forward(node: socket, number: int) -> None:
    try:  # noqa: SIM105
        node.sendall(bytes([number]))
    except OSError:
        pass  # the command has just ended


def answer(node: socket) -> int:
    """Wait for the end of the command; its exit code."""
    received = b""
    while chunk := _receive(node):
        received += chunk
    if not received:
        return fail("mpi-operator: the local node has stopped")
    if len(received) > 1:
        fail(received[1:].decode(errors="replace"))
    return received[0]


def _receive(node: socket) -> bytes:
    """Part of the answer; nothing at its end."""
    try:
        return node.recv(4096)
    except ConnectionResetError:  # the end, too: the server did not read the last signal
        return b""


def fail(sentence: str) -> int:
    """Print why there is no command; the exit code for that."""
    os.write(2, f"{sentence}\n".encode())
    return _FAILED


if __name__ == "__main__":
    # os._exit, because there is nothing to clean up and the interpreter's own end takes 3 ms.
    os._exit(main(sys.argv[1:]))
