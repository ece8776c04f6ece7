"""What an image needs to be used in an MPIJob, and what to add where it lacks something.

The contract in words is docs/reference/images.md. Each rule looks at an image and answers with one
`Finding`; rules of one kind are a row of a table at the end.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import takewhile

from . import image_mpi
from .image_files import Image

_SSHD_CONFIG = "/etc/ssh/sshd_config"
_SSH_CONFIG = "/etc/ssh/ssh_config"
_JOB_KEYS = ("/root/.ssh/id_rsa", "/home/")
_JOB_KEY_LINES = ("HostKey /root/.ssh/id_rsa", "HostKey /home/mpiuser/.ssh/id_rsa")
_EFFECTIVE = 1  # the lowest bit of a file capability: the program has it from its first instruction
# Where sshd of the distributions locks its unprivileged half in, as they were compiled.
_PRIVILEGE_SEPARATION = ("/run/sshd", "/var/empty/sshd", "/usr/share/empty.sshd", "/var/empty")
_KNOWS_EVERYBODY = ("self", "extrausers", "wrapper", "unknown", "sss", "ldap")


class State(StrEnum):
    """How bad it is."""

    OK = "ok"
    MISSING = "missing"
    """No MPIJob works with it."""
    ADVICE = "advice"
    """Some do not."""


@dataclass(frozen=True)
class Finding:
    """What a rule found, and what to write into the Dockerfile about it."""

    rule: str
    state: State
    detail: str
    remedy: str = ""


Rule = Callable[[Image], Finding]


def findings(image: Image) -> list[Finding]:
    """What all rules say about an image."""
    return [rule(image) for rule in _RULES]


def shell(image: Image) -> Finding:
    """The operator's own scripts, and every session of sshd."""
    return _program_at("shell", image, "/bin/sh", "RUN apt-get install -y dash")


def ssh_server(image: Image) -> Finding:
    """What the operator starts in a worker that has no command."""
    return _program_at(
        "ssh server", image, "/usr/sbin/sshd", "RUN apt-get install -y openssh-server"
    )


def ssh_client(image: Image) -> Finding:
    """What mpirun reaches workers with."""
    found = image.program("ssh")
    if found:
        return Finding("ssh client", State.OK, found)
    return Finding(
        "ssh client", State.MISSING, "no ssh on the PATH", "RUN apt-get install -y openssh-client"
    )


def mpirun(image: Image) -> Finding:
    """What a launcher runs, and of which MPI it is."""
    found = image.program("mpirun") or image.program("mpiexec")
    if found:
        return Finding("mpirun", State.OK, f"{found}: {image_mpi.describe(image, found)}")
    elsewhere = next((path for path in image.files if path.endswith("/bin/mpirun")), None)
    if elsewhere:
        place = elsewhere.removesuffix("/mpirun")
        return Finding(
            "mpirun",
            State.MISSING,
            f"/{elsewhere} is not on the PATH of the image",
            f"ENV PATH=/{place}:$PATH",
        )
    return Finding(
        "mpirun",
        State.MISSING,
        "none on the PATH",
        "RUN apt-get install -y openmpi-bin",
    )


def unknown_hosts(image: Image) -> Finding:
    """The pods of a job are new hosts each time, and nobody is there to say yes."""
    options = _options(image, _SSH_CONFIG)
    strict = options.get("stricthostkeychecking", ["ask"])[0].lower()
    if strict in ("no", "off", "accept-new"):
        return Finding("unknown hosts", State.OK, f"StrictHostKeyChecking {strict}")
    return Finding(
        "unknown hosts",
        State.MISSING,
        f"ssh asks before it connects to a new host: StrictHostKeyChecking {strict}",
        _appended(_SSH_CONFIG, "StrictHostKeyChecking no"),
    )


def known_hosts(image: Image) -> Finding:
    """Where ssh would write: a file of another job's hosts, or one that cannot be written."""
    options = _options(image, _SSH_CONFIG)
    if options.get("userknownhostsfile", [""])[0] == "/dev/null":
        return Finding("known hosts", State.OK, "UserKnownHostsFile /dev/null")
    return Finding(
        "known hosts",
        State.ADVICE,
        "ssh tries to write the hosts into ~/.ssh, which is the job's Secret, and complains",
        _appended(_SSH_CONFIG, "UserKnownHostsFile /dev/null"),
    )


def port(image: Image) -> Finding:
    """Both sides must agree on it."""
    client = _options(image, _SSH_CONFIG).get("port", ["22"])[0]
    server = _options(image, _SSHD_CONFIG).get("port", ["22"])
    if client not in server:
        return Finding(
            "port",
            State.MISSING,
            f"ssh connects to {client}, sshd listens on {', '.join(server)}",
            _appended(_SSH_CONFIG, f"Port {server[0]}"),
        )
    if int(client) < 1024:
        return Finding(
            "port",
            State.ADVICE,
            f"{client}: only root can listen there, and with hostNetwork it is the node's own",
            f"{_appended(_SSH_CONFIG, 'Port 2222')}\n{_appended(_SSHD_CONFIG, 'Port 2222')}",
        )
    return Finding("port", State.OK, client)


def strict_modes(image: Image) -> Finding:
    """Secrets are mounted with modes that sshd does not like."""
    if _options(image, _SSHD_CONFIG).get("strictmodes", ["yes"])[0].lower() == "no":
        return Finding("key files", State.OK, "StrictModes no")
    return Finding(
        "key files",
        State.MISSING,
        "sshd refuses keys from the volume of a Secret, whose modes are not the user's",
        _appended(_SSHD_CONFIG, "StrictModes no"),
    )


def privilege_separation(image: Image) -> Finding:
    """Without it sshd does not start as root."""
    places = (place for place in _PRIVILEGE_SEPARATION if image.find(place))
    if found := next(places, None):
        return Finding("privilege separation", State.OK, found)
    return Finding(
        "privilege separation",
        State.MISSING,
        "sshd does not start as root without its directory",
        "RUN mkdir -p /run/sshd",
    )


def host_key(image: Image) -> Finding:
    """sshd ends at once without one."""
    named = _options(image, _SSHD_CONFIG).get("hostkey", [])
    inside = [path for path in named if image.find(path)]
    inside += [f"/{path}" for path in sorted(image.files) if _is_host_key(path)]
    if inside:
        told = f"{inside[0]} is in the image: whoever has the image has the key"
        return _host_key(State.ADVICE, told, f"RUN rm -f {' '.join(dict.fromkeys(inside))}\n")
    if any(path.startswith(_JOB_KEYS) for path in named):
        return Finding("host key", State.OK, "the key of the job, where it is mounted")
    if named:
        told = f"{named[0]} is not in the image: somebody has to put it there before sshd starts"
        return _host_key(State.ADVICE, told)
    if image.settings.get("Entrypoint"):
        told = "there is none, unless the entry point makes one, which a pod's command replaces"
        return _host_key(State.ADVICE, told)
    return _host_key(State.MISSING, "sshd finds no key, and ends; the key of the job can be one")


def _host_key(state: State, detail: str, first: str = "") -> Finding:
    return Finding("host key", state, detail, first + _appended(_SSHD_CONFIG, *_JOB_KEY_LINES))


def user(image: Image) -> Finding:
    """A name for jobs that do not run as root."""
    people = [line.split(":") for line in image.text("/etc/passwd").splitlines()]
    names = [entry for entry in people if len(entry) >= 6 and 1000 <= int(entry[2] or 0) < 60000]
    if names:
        name, number, home = names[0][0], names[0][2], names[0][5]
        return Finding("user", State.OK, f"{name} ({number}), sshAuthMountPath {home}/.ssh")
    return Finding(
        "user",
        State.ADVICE,
        "there is nobody but root, so jobs run as root only",
        "RUN useradd --create-home --uid 1000 --password '*' mpiuser",
    )


def any_uid(image: Image) -> Finding:
    """ssh and sshd refuse to work for who has no name."""
    sources = _password_sources(image.text("/etc/nsswitch.conf"))
    if found := next((source for source in sources if source in _KNOWS_EVERYBODY), None):
        return Finding("any uid", State.OK, f"by the source {found!r} of users")
    return Finding(
        "any uid",
        State.ADVICE,
        "a pod with a uid that is not in /etc/passwd cannot use ssh (No user exists for uid …)",
        "COPY --from=mpioperator/base:trixie /usr/lib/libnss_self.so.2 /usr/lib/\n"
        "RUN sed -i 's/^passwd:.*/passwd: files self/' /etc/nsswitch.conf && ldconfig",
    )


def capability(image: Image) -> Finding:
    """A program that asks for a capability cannot be executed where none may be had."""
    sshd = image.find("/usr/sbin/sshd")
    stored = sshd.capability if sshd else b""
    if stored[:1] and stored[0] & _EFFECTIVE:
        return Finding(
            "capabilities",
            State.ADVICE,
            "sshd has a file capability: where all are dropped, it cannot be executed at all",
            "RUN setcap -r /usr/sbin/sshd",
        )
    return Finding("capabilities", State.OK, "sshd needs none")


def pam(image: Image) -> Finding:
    """PAM works for root only, and with more rights than containers have."""
    if _options(image, _SSHD_CONFIG).get("usepam", ["no"])[0].lower() == "no":
        return Finding("PAM", State.OK, "UsePAM no")
    return Finding(
        "PAM",
        State.ADVICE,
        "sessions go through PAM, which restricted containers often refuse",
        f"RUN sed -i 's/^UsePAM .*/UsePAM no/' {_SSHD_CONFIG}",
    )


_RULES: tuple[Rule, ...] = (
    shell,
    ssh_server,
    ssh_client,
    mpirun,
    unknown_hosts,
    known_hosts,
    port,
    strict_modes,
    privilege_separation,
    host_key,
    user,
    any_uid,
    capability,
    pam,
)


def _program_at(rule: str, image: Image, path: str, remedy: str) -> Finding:
    found = image.find(path)
    if found is None:
        return Finding(rule, State.MISSING, f"there is no {path}", remedy)
    if not found.is_executable:
        return Finding(rule, State.MISSING, f"{path} cannot be executed", f"RUN chmod +x {path}")
    return Finding(rule, State.OK, path)


def _options(image: Image, path: str) -> dict[str, list[str]]:
    """The options of ssh or sshd that hold for all hosts, with their values; the first counts."""
    options: dict[str, list[str]] = {}
    for line in _lines(image, path):
        keyword, _, value = line.replace("=", " ", 1).partition(" ")
        options.setdefault(keyword.lower(), []).append(value.strip().strip('"'))
    return options


def _lines(image: Image, path: str) -> Iterator[str]:
    """What is in force, with the files that are included where they are."""
    stripped = (line.strip() for line in image.text(path).splitlines())
    for line in takewhile(lambda line: not _is_for_some(line), stripped):
        if line.lower().startswith("include "):
            for included in _included(image, line.split()[1]):
                yield from _lines(image, included)
        elif line and not line.startswith("#") and not line.lower().startswith("host "):
            yield line


def _is_for_some(line: str) -> bool:
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


def _appended(path: str, *lines: str) -> str:
    # In front: of most options the first value counts.
    return "RUN sed -i " + " ".join(f"-e '1i {line}'" for line in lines) + f" {path}"
