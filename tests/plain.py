"""Requests over plain HTTP: reading the certificates of the world for each client takes longer than the request."""

import ssl

# Trusts nobody, so that whatever would be sent over TLS after all fails.
PLAIN = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
