"""Manifests as text and as objects: read, converted between API versions, written."""
