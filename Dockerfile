# The operator. Runs as an arbitrary uid, with a read-only root file system.
#   docker build -t mpioperator/mpi-operator .
FROM debian:trixie-slim AS builder
RUN apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends python3-pip python3-venv \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /src
# Dependencies first: they change less often than the operator, so builders can cache them.
COPY pyproject.toml constraints.txt ./
RUN python3 -m venv /opt/mpi-operator \
 && python3 -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["dependencies"], sep="\n")' > dependencies.txt \
 && /opt/mpi-operator/bin/pip install --no-cache-dir --no-compile --constraint constraints.txt --requirement dependencies.txt \
 && find /opt/mpi-operator -name '*.so' | xargs ldd | awk '$3 ~ "^/" { print $3 }' | sort -u > /libraries
COPY README.md LICENSE ./
COPY src/ src/
RUN /opt/mpi-operator/bin/pip install --no-cache-dir --no-compile --constraint constraints.txt --no-deps . \
 && /opt/mpi-operator/bin/python -m compileall -q /opt/mpi-operator/lib \
 && rm -rf /opt/mpi-operator/lib/python3.*/site-packages/pip* /opt/mpi-operator/bin/pip* /opt/mpi-operator/bin/[Aa]ctivate*

# Python and the packages that it needs: neither a shell nor a package manager, which would be half of the image.
FROM debian:trixie-slim AS system
RUN apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends python3 ca-certificates \
 && rm -rf /var/lib/apt/lists/*
# The packages of Python, and of the libraries that it and all extension modules load.
COPY --from=builder /libraries /libraries
RUN dpkg-query --show --showformat '${db:Status-Abbrev} ${Package}\n' \
      base-files ca-certificates media-types netbase tzdata python3-minimal 'python3.*-minimal' 'libpython3.*' \
    | awk '$1 == "ii" { print $2 }' > /packages \
 && ldd /usr/bin/python3 /usr/lib/python3.*/lib-dynload/*.so | awk '$3 ~ "^/" { print $3 }' >> /libraries \
 && sort -u /libraries | xargs realpath | xargs dpkg-query --search | cut -d : -f 1 | sort -u >> /packages
# Their files and what their installation has written, without other character sets and what only developers need.
RUN mkdir -p /system/var/lib/dpkg \
 && xargs dpkg-query --status < /packages > /system/var/lib/dpkg/status \
 && { xargs dpkg-query --listfiles < /packages; find /usr/lib/python3.* /etc/ssl; ls /etc/group /etc/passwd; } \
    | grep -Ev '/(gconv|test|pydoc_data)(/|$)' | sed 's|^/||' | sort -u \
    | while read -r path; do if [ -e "/$path" ] || [ -L "/$path" ]; then echo "$path"; fi; done > /files \
 && tar --create --directory / --no-recursion --files-from /files | tar --extract --directory /system \
 && chroot /system /usr/bin/python3 -c 'import asyncio, ctypes, decimal, multiprocessing, sqlite3, ssl, uuid, zoneinfo'

FROM scratch
COPY --from=system /system /
COPY --from=builder /opt/mpi-operator /opt/mpi-operator
ENV PATH=/opt/mpi-operator/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
USER 65532:65532
ENTRYPOINT ["mpi-operator"]
