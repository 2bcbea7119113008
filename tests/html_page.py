"""What a page of HTML is made of."""

from html.parser import HTMLParser


class Page(HTMLParser):
    """Its tags, where they point, the words of its images, and its texts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text
        self.tags: list[str] = []
        self.sources: list[str] = []
        self.alternatives: list[str] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            if name in ("src", "href", "xlink:href"):
                self.sources.append(value or "")
            if name == "alt":
                self.alternatives.append(value or "")

    def handle_data(self, data: str) -> None:
        self.texts.append(data)
