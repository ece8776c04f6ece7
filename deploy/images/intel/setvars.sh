# For scripts that source it. The image has these variables set already; `sh -l` and ssh sessions have not.
I_MPI_ROOT=/opt/intel/oneapi/mpi/latest
case :$PATH: in *:$I_MPI_ROOT/bin:*) ;; *) PATH=$I_MPI_ROOT/bin:$PATH ;; esac
LD_LIBRARY_PATH=$I_MPI_ROOT/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export I_MPI_ROOT PATH LD_LIBRARY_PATH
