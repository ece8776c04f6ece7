# mpicc and mpicxx of MPICH, for a build stage.
#   docker build -t mpioperator/mpich-builder -f deploy/images/mpich/builder.Dockerfile deploy/images/mpich
ARG debian=trixie
FROM mpioperator/toolchain:${debian}
RUN apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends libmpich-dev \
 && rm -rf /var/lib/apt/lists/*
