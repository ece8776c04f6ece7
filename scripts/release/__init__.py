"""What a release consists of, made from one commit: `make release` writes it to `dist/`.

| files | module |
|---|---|
| `python/`: wheel and source distribution | `python_packages` |
| `chart/`: the Helm chart as a package | `chart_package` |
| `manifests/`: the one-file manifest, and all of `deploy/` as an archive | `manifests` |
| `images/`: archives for `docker load` | `image_archives` |
| `sbom/`: bills of materials in CycloneDX format | `sbom` |
| `RELEASE_NOTES.md` | `notes` |
| `SHA256SUMS` | `checksums` |

`source` checks that there are no uncommitted changes, and exports the commit. The same commit gives
the same wheel, source distribution, chart and manifests, byte by byte.
"""
