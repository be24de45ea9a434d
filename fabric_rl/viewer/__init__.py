"""The match viewer: a page for the browser, which `viewer/` builds, and the server that hands it out."""
