# mpicc and mpic++ of Open MPI, for a build stage.
#   docker build -t mpioperator/openmpi-builder -f deploy/images/openmpi/builder.Dockerfile deploy/images/openmpi
ARG debian=trixie
FROM mpioperator/toolchain:${debian}
RUN apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends libopenmpi-dev \
 && rm -rf /var/lib/apt/lists/*
