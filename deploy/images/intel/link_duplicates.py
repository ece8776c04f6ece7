"""Replaces duplicate files below a directory by symbolic links.

Compilers link with the shortest name, and the longest one has the version. Which of them is the
file does not matter.
"""

import hashlib
import os
import sys
from pathlib import Path


def main(root: Path) -> None:
    first: dict[str, Path] = {}
    for path in sorted(root.rglob("*.so*")) + sorted(root.glob("bin/*")):
        if path.is_symlink() or not path.is_file():
            continue
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        original = first.setdefault(digest, path)
        if original != path:
            path.unlink()
            path.symlink_to(os.path.relpath(original, path.parent))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
