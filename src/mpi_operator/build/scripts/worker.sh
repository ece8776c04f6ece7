#!/bin/sh
# Starts a worker.
#
#   worker.sh COMMAND...
#
# Sessions of sshd begin with an empty environment, so this saves that of the container in a file, which
# remote_shell.sh reads in each session. Then it runs the command.

mpi_operator_directory=/run/mpi-operator

# In a subshell: the variables of a container may have any name, and must not change.
keep_environment() (
  umask 022
  # So that only root decides what root's sessions read.
  chmod 755 "$mpi_operator_directory" 2>/dev/null
  export -p | while IFS= read -r mpi_operator_line; do
    mpi_operator_name=${mpi_operator_line#export }
    mpi_operator_name=${mpi_operator_name#declare -x }
    mpi_operator_name=${mpi_operator_name%%=*}
    case $mpi_operator_name in
      # Lines of a value that are no name; variables of a session; variables of shells.
      '' | [0-9]* | *[!A-Za-z0-9_]* | _ | mpi_operator_*) continue ;;
      HOME | USER | LOGNAME | SHELL | MAIL | PWD | OLDPWD | SHLVL | TERM | HOSTNAME | SSH_*) continue ;;
      IFS | PS1 | PS2 | PS4 | OPTIND | PPID | UID | EUID | SHELLOPTS | BASHOPTS) continue ;;
    esac
    eval "[ -n \"\${$mpi_operator_name+set}\" ]" || continue
    eval "mpi_operator_rest=\$$mpi_operator_name"
    mpi_operator_quoted=''
    while :; do
      case $mpi_operator_rest in
        *\'*)
          mpi_operator_quoted="$mpi_operator_quoted${mpi_operator_rest%%\'*}'\\''"
          mpi_operator_rest=${mpi_operator_rest#*\'}
          ;;
        *) break ;;
      esac
    done
    printf "export %s='%s'\n" "$mpi_operator_name" "$mpi_operator_quoted$mpi_operator_rest"
  done >"$mpi_operator_directory/environment"
)

keep_environment || echo "mpi-operator: cannot write $mpi_operator_directory: ranks will lack the environment variables of this container" >&2
unset mpi_operator_directory
exec "$@"
