"""The images of this project, built from their Dockerfiles without a registry and without Docker.

    archives = image_builds.provide(["pi-openmpi"])        # {"pi-openmpi": Path("….tar")}
    cluster.load(*archives.values())

Read in this order: `catalog` says which images there are and what they are made of, `keys` turns
that into a hash, `debian` makes their base image, `buildah` builds one, and `building` all that are
missing. `python -m devcluster.image_builds` is the command line.
"""

from devcluster.image_builds.building import provide
from devcluster.image_builds.catalog import IMAGES, Image

__all__ = ["IMAGES", "Image", "provide"]
