"""The embedded service: the imitated interface on loopback, backed by SQLite.

It is an independent reading of the interface and shares no code with the rest of the package: what
the client assumes and what this does may only agree because both read the same facts.

How the pieces fit: `server` parses options and runs uvicorn; `app` builds the ASGI application out
of the resources' routes and wraps each call in `gate` (request log, authentication, errors);
`resources/` has a file a resource, which validates with `fields` and `destinations` and keeps
bodies in `store`; `seed` fills the store; `admin` is the switchboard under `/_emulator/`.
"""
