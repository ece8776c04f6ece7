"""An API server in memory, with the part of Kubernetes behind it that jobs rely on.

* `cluster` has the verbs; `served_kinds` the kinds, and `defaulting` their defaults.
* Writes: `object_names`, `updates` and `scale_subresource` compute the object to store, `deletion`
  and `garbage_collector` what a delete removes. `api_errors` are the errors of a real server.
* `object_store` has the current objects (`stored_object`), `watch_cache` their latest changes.
* Reads: `selectors` and `watches`.
"""
