"""Reading a page as a browser would: its forms, links and texts, without a browser."""

from html.parser import HTMLParser
from typing import NamedTuple

VOID = frozenset({"input", "meta", "link", "br", "hr", "img", "path", "rect"})
INLINE = frozenset({"a", "span", "bdi", "strong", "code", "time", "kbd", "title", "textarea", "svg", "path", "rect"})
# Attributes that lead somewhere, load something or send something.
LEADS = frozenset({"src", "href", "action", "formaction", "poster", "data", "srcset", "ping", "background", "manifest"})


class Tag(NamedTuple):
    """A start tag with its attributes."""

    name: str
    attributes: dict[str, str]


class Page(HTMLParser):
    """A page that was read whole; tags that do not close as they opened are faults."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[Tag] = []
        self.text = ""
        self.title = ""
        self.faults: list[str] = []
        self.areas: dict[str, str] = {}
        self._open: list[Tag] = []
        self.feed(text)
        self.close()
        self.faults += [f"{tag.name} is never closed" for tag in self._open]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._space(tag)
        self.tags.append(Tag(tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self._open.append(self.tags[-1])

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(Tag(tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        self._space(tag)
        if not self._open or self._open.pop().name != tag:
            self.faults.append(f"{tag} is closed where it is not open")

    def handle_data(self, data: str) -> None:
        inside = self._open[-1] if self._open else Tag("", {})
        if inside.name == "title":
            self.title += data
        elif inside.name == "textarea":
            self.areas[inside.attributes["name"]] = data.removeprefix("\n")
        if not any(tag.name in {"template", "dialog", "head"} for tag in self._open):
            self.text += data

    def _space(self, tag: str) -> None:
        """What begins or ends a box stands apart from what is beside it."""
        if tag not in INLINE:
            self.text += " "

    @property
    def words(self) -> str:
        """What is read, with any space as one."""
        return " ".join(self.text.split())

    def has(self, attribute: str) -> list[Tag]:
        """The tags that have an attribute."""
        return [tag for tag in self.tags if attribute in tag.attributes]

    def named(self, name: str) -> list[Tag]:
        """The tags of a name."""
        return [tag for tag in self.tags if tag.name == name]

    def leads(self) -> list[tuple[Tag, str]]:
        """Everything that leads somewhere or loads something, with where."""
        return [(tag, value) for tag in self.tags for name, value in tag.attributes.items() if name in LEADS]

    def rows(self) -> list[str]:
        """The approvals of a list, in their order."""
        return [tag.attributes["data-approval"] for tag in self.named("article") if "data-approval" in tag.attributes]

    def fields(self) -> dict[str, str]:
        """What the form of a decision sends when nobody has typed anything; without its boxes, areas and buttons."""
        inside, found = False, {}
        for tag in self.tags:
            inside = "data-decide" in tag.attributes if tag.name == "form" else inside
            is_of_it = inside or tag.attributes.get("form") == "decide"
            if is_of_it and tag.name == "input" and tag.attributes.get("type") not in {"checkbox", "radio"}:
                found[tag.attributes["name"]] = tag.attributes.get("value", "")
        return found

    def verdicts(self) -> list[str]:
        """The buttons of a decision that can be pressed."""
        return [
            tag.attributes["value"]
            for tag in self.named("button")
            if tag.attributes.get("name") == "verdict" and "disabled" not in tag.attributes
        ]
