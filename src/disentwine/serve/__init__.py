"""The explorer: a page, and the HTTP API below it, on which trained runs are tried out."""
