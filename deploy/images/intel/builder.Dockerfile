# mpicc and mpicxx of Intel MPI, with GCC behind them, for a build stage.
#   docker build -t mpioperator/intel-builder -f deploy/images/intel/builder.Dockerfile deploy/images/intel
ARG debian=trixie
FROM mpioperator/toolchain:${debian}
ARG version=2021.18.1
# - Debian's pip installs below `local`.
# - Wheels have no symbolic links, so this one contains the same library up to four times.
COPY setvars.sh link_duplicates.py /opt/intel/oneapi/
RUN pip install --no-cache-dir --no-deps --break-system-packages --prefix /installed \
      impi-rt==$version impi-devel==$version \
 && mkdir /opt/intel/oneapi/mpi \
 && mv /installed/local /opt/intel/oneapi/mpi/$version \
 && ln -s $version /opt/intel/oneapi/mpi/latest \
 && rm -rf /installed /opt/intel/oneapi/mpi/latest/lib/python* \
 && python3 /opt/intel/oneapi/link_duplicates.py /opt/intel/oneapi/mpi/$version \
 && rm /opt/intel/oneapi/link_duplicates.py \
 && echo /opt/intel/oneapi/mpi/latest/lib > /etc/ld.so.conf.d/intel-mpi.conf && ldconfig
ENV I_MPI_ROOT=/opt/intel/oneapi/mpi/latest \
    PATH=/opt/intel/oneapi/mpi/latest/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
