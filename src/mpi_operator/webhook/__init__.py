"""The webhook: converts MPIJobs between API versions, and decides whether a job may be stored.

    API server ──TLS──► server ──► conversion_review ──► api.conversion
                          │
                          └──────► admission (decides) ──► admission_response (answers)

    rotation (pure) ◄── certificate_keeper ◄──► Secret, shared by all replicas
                              │
                              ├──► tls: what `server` presents, replaced while it runs
                              └──► ca_bundle: what the API server trusts, in the CRD and others

`webhook` puts these together; it runs in a thread with its own event loop (`loop_thread`), because
kubectl waits for every conversion and a busy controller would delay it.
"""
