"""Interactive explorer of trained runs: a web page and its HTTP API."""
