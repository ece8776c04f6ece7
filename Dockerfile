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
 && /opt/mpi-operator/bin/pip install --no-cache-dir --no-compile --constraint constraints.txt --requirement dependencies.txt
COPY README.md LICENSE ./
COPY src/ src/
RUN /opt/mpi-operator/bin/pip install --no-cache-dir --no-compile --constraint constraints.txt --no-deps . \
 && /opt/mpi-operator/bin/python -m compileall -q /opt/mpi-operator/lib \
 && rm -rf /opt/mpi-operator/lib/python3.*/site-packages/pip* /opt/mpi-operator/bin/pip*

FROM debian:trixie-slim
RUN apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends python3 ca-certificates \
 && rm -rf /var/lib/apt/lists/*
COPY --from=builder /opt/mpi-operator /opt/mpi-operator
ENV PATH=/opt/mpi-operator/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
USER 65532:65532
ENTRYPOINT ["mpi-operator"]
