"""The rules that an image must follow for use in an MPIJob, and what to add where it does not.

docs/reference/images.md explains the contract. Each rule checks an image and returns one `Finding`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import takewhile

from mpi_operator.api.launcher_transport import Transport

from . import image_mpi
from .image_files import Image

_SSHD_CONFIG = "/etc/ssh/sshd_config"
_SSH_CONFIG = "/etc/ssh/ssh_config"
_JOB_KEYS = ("/root/.ssh/id_rsa", "/home/")
_JOB_KEY_LINES = ("HostKey /root/.ssh/id_rsa", "HostKey /home/mpiuser/.ssh/id_rsa")
_EFFECTIVE = 1  # bit of a file capability: the program has it from its first instruction
# The directories that distributions compile into sshd for its unprivileged process.
_PRIVILEGE_SEPARATION = ("/run/sshd", "/var/empty/sshd", "/usr/share/empty.sshd", "/var/empty")
_RESOLVES_ANY_UID = ("self", "extrausers", "wrapper", "unknown", "sss", "ldap")


class State(StrEnum):
    """How severe a finding is."""

    OK = "ok"
    MISSING = "missing"
    """No MPIJob works with the image."""
    ADVICE = "advice"
    """Some MPIJobs do not work with the image."""


@dataclass(frozen=True)
class Finding:
    """What a rule found, and the Dockerfile lines that fix it."""

    rule: str
    state: State
    detail: str
    remedy: str = ""


Result = tuple[State, str, str]
"""State, detail and remedy of a finding."""


def findings(image: Image, transport: Transport = Transport.SSH) -> list[Finding]:
    """The findings of all rules for jobs that start ranks in this way."""
    return [Finding(name, *rule(image)) for name, rule in _RULES[transport].items()]


def is_usable(found: Sequence[Finding]) -> bool:
    """Whether there are jobs that can use the image."""
    return all(finding.state is not State.MISSING for finding in found)


def _ok(detail: str) -> Result:
    return State.OK, detail, ""


def _missing(detail: str, remedy: str) -> Result:
    return State.MISSING, detail, remedy


def _advice(detail: str, remedy: str) -> Result:
    return State.ADVICE, detail, remedy


def shell(image: Image) -> Result:
    """The operator's scripts, every session of sshd and every command by exec need a shell."""
    return _program_at(image, "/bin/sh", "RUN apt-get install -y dash")


def ssh_server(image: Image) -> Result:
    """The operator starts sshd in a worker that has no command."""
    return _program_at(image, "/usr/sbin/sshd", "RUN apt-get install -y openssh-server")


def sleep(image: Image) -> Result:
    """The operator starts sleep in a worker that has no command and no sshd."""
    if found := image.program("sleep"):
        return _ok(found)
    return _missing("sleep is not on the PATH", "RUN apt-get install -y coreutils")


def ssh_client(image: Image) -> Result:
    """mpirun reaches workers by ssh."""
    if found := image.program("ssh"):
        return _ok(found)
    return _missing("ssh is not on the PATH", "RUN apt-get install -y openssh-client")


def mpirun(image: Image) -> Result:
    """The launcher runs mpirun; the finding says of which MPI it is."""
    if found := image.program("mpirun") or image.program("mpiexec"):
        return _ok(f"{found}: {image_mpi.describe(image, found)}")
    if elsewhere := next((path for path in image.files if path.endswith("/bin/mpirun")), None):
        place = elsewhere.removesuffix("/mpirun")
        return _missing(f"/{elsewhere} is not on the PATH", f"ENV PATH=/{place}:$PATH")
    return _missing("mpirun is not on the PATH", "RUN apt-get install -y openmpi-bin")


def unknown_hosts(image: Image) -> Result:
    """The pods of a job are new hosts each time, and ssh must accept them without a prompt."""
    strict = _option(image, _SSH_CONFIG, "StrictHostKeyChecking", "ask")
    if strict in ("no", "off", "accept-new"):
        return _ok(f"StrictHostKeyChecking {strict}")
    return _missing(
        f"ssh does not connect to new hosts: StrictHostKeyChecking {strict}",
        _prepended(_SSH_CONFIG, "StrictHostKeyChecking no"),
    )


def known_hosts(image: Image) -> Result:
    """ssh should not record hosts: ~/.ssh is read-only, and the next job has other hosts."""
    if _option(image, _SSH_CONFIG, "UserKnownHostsFile", "") == "/dev/null":
        return _ok("UserKnownHostsFile /dev/null")
    return _advice(
        "ssh prints a warning per host, because it cannot write to ~/.ssh, the job's Secret",
        _prepended(_SSH_CONFIG, "UserKnownHostsFile /dev/null"),
    )


def port(image: Image) -> Result:
    """ssh and sshd must use the same port."""
    client = _options(image, _SSH_CONFIG).get("port", ["22"])[0]
    server = _options(image, _SSHD_CONFIG).get("port", ["22"])
    if client not in server:
        return _missing(
            f"ssh connects to port {client}, but sshd listens on {', '.join(server)}",
            _prepended(_SSH_CONFIG, f"Port {server[0]}"),
        )
    if int(client) < 1024:
        return _advice(
            f"port {client} needs root, and with hostNetwork it is the port of the node's sshd",
            f"{_prepended(_SSH_CONFIG, 'Port 2222')}\n{_prepended(_SSHD_CONFIG, 'Port 2222')}",
        )
    return _ok(client)


def key_files(image: Image) -> Result:
    """sshd must accept keys from the volume of a Secret, which root owns."""
    if _option(image, _SSHD_CONFIG, "StrictModes", "yes") == "no":
        return _ok("StrictModes no")
    return _missing(
        "sshd rejects the job's keys, because the user does not own the Secret's files",
        _prepended(_SSHD_CONFIG, "StrictModes no"),
    )


def privilege_separation(image: Image) -> Result:
    """sshd does not start as root without its privilege separation directory."""
    places = (place for place in _PRIVILEGE_SEPARATION if image.find(place))
    if found := next(places, None):
        return _ok(found)
    return _missing(
        "sshd does not start as root without its privilege separation directory",
        "RUN mkdir -p /run/sshd",
    )


def host_key(image: Image) -> Result:
    """sshd exits without a host key."""
    use_job_key = _prepended(_SSHD_CONFIG, *_JOB_KEY_LINES)
    named = _options(image, _SSHD_CONFIG).get("hostkey", [])
    inside = [path for path in named if image.find(path)]
    inside += [f"/{path}" for path in sorted(image.files) if _is_host_key(path)]
    if inside:
        return _advice(
            f"{inside[0]} is in the image, so anyone with the image has the key",
            f"RUN rm -f {' '.join(dict.fromkeys(inside))}\n{use_job_key}",
        )
    if any(path.startswith(_JOB_KEYS) for path in named):
        return _ok("the key of the job")
    if named:
        return _advice(f"{named[0]} must be created before sshd starts", use_job_key)
    if image.settings.get("Entrypoint"):
        return _advice(
            "the entry point may create one, but a pod's command replaces the entry point",
            use_job_key,
        )
    return _missing("sshd has no host key; it can use the key of the job", use_job_key)


def user(image: Image) -> Result:
    """Jobs that do not run as root need a user."""
    entries = [line.split(":") for line in image.text("/etc/passwd").splitlines()]
    users = [entry for entry in entries if len(entry) >= 6 and 1000 <= int(entry[2] or 0) < 60000]
    if users:
        name, number, home = users[0][0], users[0][2], users[0][5]
        return _ok(f"{name} ({number}), sshAuthMountPath {home}/.ssh")
    return _advice(
        "root is the only user, so jobs can only run as root",
        "RUN useradd --create-home --uid 1000 --password '*' mpiuser",
    )


def any_uid(image: Image) -> Result:
    """ssh and sshd refuse to run as a uid that has no user name."""
    sources = _password_sources(image.text("/etc/nsswitch.conf"))
    if found := next((source for source in sources if source in _RESOLVES_ANY_UID), None):
        return _ok(f"by {found!r} in /etc/nsswitch.conf")
    return _advice(
        "ssh fails for a uid that is not in /etc/passwd (No user exists for uid …)",
        "COPY --from=mpioperator/base:trixie /usr/lib/libnss_self.so.2 /usr/lib/\n"
        "RUN sed -i 's/^passwd:.*/passwd: files self/' /etc/nsswitch.conf && ldconfig",
    )


def capabilities(image: Image) -> Result:
    """A program with a file capability does not start in a pod that drops all capabilities."""
    sshd = image.find("/usr/sbin/sshd")
    stored = sshd.capability if sshd else b""
    if stored[:1] and stored[0] & _EFFECTIVE:
        return _advice(
            "sshd has a file capability, so it does not start in a pod that drops all capabilities",
            "RUN setcap -r /usr/sbin/sshd",
        )
    return _ok("sshd needs none")


def pam(image: Image) -> Result:
    """PAM needs root, and more rights than containers have."""
    if _option(image, _SSHD_CONFIG, "UsePAM", "no") == "no":
        return _ok("UsePAM no")
    return _advice(
        "sshd uses PAM, which often fails in restricted containers",
        f"RUN sed -i 's/^UsePAM .*/UsePAM no/' {_SSHD_CONFIG}",
    )


_RULES: Mapping[Transport, Mapping[str, Callable[[Image], Result]]] = {
    Transport.SSH: {
        "shell": shell,
        "ssh server": ssh_server,
        "ssh client": ssh_client,
        "mpirun": mpirun,
        "unknown hosts": unknown_hosts,
        "known hosts": known_hosts,
        "port": port,
        "key files": key_files,
        "privilege separation": privilege_separation,
        "host key": host_key,
        "user": user,
        "any uid": any_uid,
        "capabilities": capabilities,
        "PAM": pam,
    },
    Transport.EXEC: {
        "shell": shell,
        "sleep": sleep,
        "mpirun": mpirun,
    },
}


def _program_at(image: Image, path: str, remedy: str) -> Result:
    found = image.find(path)
    if found is None:
        return _missing(f"{path} does not exist", remedy)
    if not found.is_executable:
        return _missing(f"{path} is not executable", f"RUN chmod +x {path}")
    return _ok(path)


def _option(image: Image, path: str, name: str, default: str) -> str:
    """The value of an option of ssh or sshd, in lower case."""
    return _options(image, path).get(name.lower(), [default])[0].lower()


def _options(image: Image, path: str) -> dict[str, list[str]]:
    """The options that hold for all hosts, with all their values; the first value counts."""
    options: dict[str, list[str]] = {}
    for line in _lines(image, path):
        keyword, _, value = line.replace("=", " ", 1).partition(" ")
        options.setdefault(keyword.lower(), []).append(value.strip().strip('"'))
    return options


def _lines(image: Image, path: str) -> Iterator[str]:
    """The lines before the first block for some hosts, with the included files in place."""
    stripped = (line.strip() for line in image.text(path).splitlines())
    for line in takewhile(lambda line: not _starts_block(line), stripped):
        if line.lower().startswith("include "):
            for included in _included(image, line.split()[1]):
                yield from _lines(image, included)
        elif line and not line.startswith("#") and not line.lower().startswith("host "):
            yield line


def _starts_block(line: str) -> bool:
    words = line.lower().split()
    return words[:1] == ["match"] or (words[:1] == ["host"] and words[1:] != ["*"])


def _included(image: Image, pattern: str) -> list[str]:
    directory, _, name = pattern.rpartition("/")
    if name != "*.conf":
        return [pattern]
    start = f"{directory.lstrip('/')}/"
    return sorted(
        f"/{path}" for path in image.files if path.startswith(start) and path.endswith(".conf")
    )


def _password_sources(text: str) -> list[str]:
    lines = (line.partition(":") for line in text.splitlines())
    return next((value.split() for name, _, value in lines if name.strip() == "passwd"), [])


def _is_host_key(path: str) -> bool:
    return path.startswith("etc/ssh/ssh_host_") and path.endswith("_key")


def _prepended(path: str, *lines: str) -> str:
    # At the top, because the first value of an option counts.
    return "RUN sed -i " + " ".join(f"-e '1i {line}'" for line in lines) + f" {path}"
