"""A report as tests read it."""

from html.parser import HTMLParser

VOID = {"meta", "img", "br", "link", "input"}


class Page(HTMLParser):
    """Images, text of table rows by table, and whether every tag is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.images: dict[str, str] = {}
        self.tables: dict[str, list[list[str]]] = {}
        self.text = ""
        self._open: list[str] = []
        self._table: list[list[str]] | None = None
        self.feed(text)
        assert self._open == []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attributes}
        assert "src" not in given or given["src"].startswith("data:image/png;base64,")
        assert "href" not in given
        if tag == "img":
            self.images[given["id"]] = given["src"]
        if tag == "table":
            self._table = self.tables[given["id"]] = []
        if tag == "tr" and self._table is not None:
            self._table.append([])
        if tag in ("td", "th") and self._table is not None:
            self._table[-1].append("")
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag
        if tag == "table":
            self._table = None

    def handle_data(self, data: str) -> None:
        self.text += data
        if self._table and self._table[-1] and self._open[-1] in ("td", "th"):
            self._table[-1][-1] += data
