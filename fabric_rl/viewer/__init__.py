"""Match viewer: a page for the browser, built in `viewer/`, and its server."""
