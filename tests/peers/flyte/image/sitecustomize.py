"""Tells `horovodrun` that Horovod is compiled, which it asks a framework module."""

import sys
from types import ModuleType

framework = sys.modules["horovod.tensorflow"] = ModuleType("horovod.tensorflow")
framework.mpi_built = framework.gloo_built = lambda: True
