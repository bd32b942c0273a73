"""Pairs of a base address and a URL, for whoever has to tell what lies under it: the domain, and SQL."""

# What lies under the first, and the rest of it.
UNDER = [
    ("http://h:1/a", "http://h:1/a", ""),
    ("http://h:1/a", "http://h:1/a/", "/"),
    ("http://h:1/a", "http://h:1/a/webhooks/approval", "/webhooks/approval"),
    ("http://h:1/a", "http://h:1/a?x=/", "?x=/"),
    ("http://h:1/a", "http://h:1/a#f", "#f"),
    ("http://h:1/a/", "http://h:1/a/b", "/b"),
    ("http://h:1", "HTTP://H:1/Path?q=A", "/Path?q=A"),
    ("http://h", "http://h:80/b", "/b"),
    ("http://h:80", "http://h/b", "/b"),
    ("http://h", "http://h:080/b", "/b"),
    ("http://h", "http://h:/b", "/b"),
    ("https://h", "https://h:443/b", "/b"),
    ("https://h:443", "https://h", ""),
    ("http://[::1]", "http://[::1]:80/b", "/b"),
    ("http://[FE80::1]:8001", "http://[fe80::1]:8001/b", "/b"),
    ("http://h", "http://h?x", "?x"),
]
ELSEWHERE = [
    ("http://h:1/a", "http://h:1/ab"),
    ("http://h:1/a", "http://h:1/A"),
    ("http://h:1/a", "http://h:1/"),
    ("http://h:1/a", "http://h:1/b/a"),
    ("http://h:1/a", "http://h:1/a.b"),
    ("http://h:1/a", "http://h:1/a%2Fb"),
    ("http://h:1", "http://h:10/"),
    ("http://h:1", "http://h/"),
    ("http://h", "http://h:8080/"),
    ("http://h", "http://h.evil/"),
    ("http://h", "https://h/"),
    ("http://h:443", "https://h/"),
    ("https://h", "https://h:80/"),
    ("http://[::1]", "http://[::1]:8001/"),
    ("http://h", "http://other/http://h/"),
    ("http://h", "http://other/?u=http://h/"),
]
