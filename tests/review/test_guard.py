import http.client
import json
import socket
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from audits import make_photos
from review.served import TOKEN, Served, served


@pytest.fixture(scope="module")
def review(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("guarded")
    with served(make_photos(folder / "photos", samples=40), folder / "audit") as running:
        yield running


def ask(
    review: Served,
    path: str,
    *,
    method: str = "GET",
    host: str | None = None,
    origin: str | None = None,
    body: str | bytes | None = None,
) -> tuple[int, str, http.client.HTTPMessage]:
    connection = http.client.HTTPConnection("127.0.0.1", review.port, timeout=60)
    headers = {"Host": host or f"127.0.0.1:{review.port}"}
    if origin is not None:
        headers["Origin"] = origin
    connection.request(method, path, body=body, headers=headers)
    answer = connection.getresponse()
    text = answer.read().decode("utf-8", "replace")
    connection.close()
    return answer.status, text, answer.headers


PATHS = ("", "start", "queue", "state", "sample/0", "picture/0", "reviewed.csv", "review.js")


def test_nothing_is_answered_without_the_token_and_nothing_stays_in_a_cache(review: Served) -> None:
    for token in ("", "/", "/wrong", "/wröng", f"/{TOKEN}x", f"/x/{TOKEN}"):
        for path in PATHS:
            status, text, _ = ask(review, quote(f"{token}/{path}"))
            assert status == 403
            assert "lacks this review's token" in text
    for path in PATHS:
        status, _, headers = ask(review, f"/{TOKEN}/{path}")
        assert status == 200
        assert headers["Cache-Control"] == "no-store"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["Content-Security-Policy"].startswith("default-src 'none';")
        assert "unsafe" not in headers["Content-Security-Policy"]


def test_only_its_own_names_are_answered(review: Served) -> None:
    port = review.port
    for host in (f"localhost:{port}", f"LOCALHOST:{port}"):
        assert ask(review, f"/{TOKEN}/start", host=host)[0] == 200
    for host in ("evil.example", f"evil.example:{port}", "127.0.0.1", f"127.0.0.1:{port + 1}"):
        status, text, _ = ask(review, f"/{TOKEN}/start", host=host)
        assert status == 403
        assert "at no other name" in text


def test_decisions_come_from_its_own_page_only(review: Served) -> None:
    values = json.dumps({"place": 0, "choice": "keep", "since": 0})
    for origin in (None, "null", "http://evil.example", f"https://127.0.0.1:{review.port}"):
        for path in ("decide", "accept", "undo"):
            asked = ask(review, f"/{TOKEN}/{path}", method="POST", origin=origin, body=values)
            assert asked[0] == 403
    assert review.decisions.latest() == {}


def decide(review: Served, body: str | bytes, path: str = "decide") -> tuple[int, str]:
    mine = f"http://127.0.0.1:{review.port}"
    return ask(review, f"/{TOKEN}/{path}", method="POST", origin=mine, body=body)[:2]


def test_nonsense_is_refused_and_keeps_nothing(review: Served) -> None:
    before = review.decisions.latest()
    whole = {"place": 0, "choice": "keep"}
    pair = {"given": 0, "suggested": 1}
    decisions: list[Any] = [
        *({}, [], "keep", {"place": 0}),
        *({**whole, "place": place} for place in (40, -1, True, 1e300, 10**30, None)),
        *({**whole, "choice": choice} for choice in ("burn", "another", ["keep"], "\ud800")),
        *({**whole, "choice": "another", "label": label} for label in (3, "red", 10**40)),
    ]
    pairs: list[Any] = [
        *({**pair, name: n} for name in pair for n in (-1, 10**30, 1e300, None, [[[]]], {"a": {}})),
        *({**pair, "suggested": suggested} for suggested in (0, 3)),
        {},
    ]
    asked = [*(("decide", each) for each in decisions), *(("accept", each) for each in pairs)]
    for path, values in asked:
        status, text = decide(review, json.dumps(values), path)
        assert status == 400, (values, text)
        assert 0 < len(text) <= 1000
    for body in ("", "{", "NaN", "[" * 100_000, '{"since":' + "9" * 5000 + "}", b"\xff\xfe\x00"):
        for path in ("decide", "accept", "undo"):
            status, text = decide(review, body, path)
            assert status == 400, (body[:20], text)
    # What was expected is said.
    assert decide(review, "{") == (400, "expected a JSON object with what is decided")
    assert decide(review, "{}")[1].startswith("place: expected")
    for path in ("decide", "accept", "undo"):
        assert decide(review, b" " * (1 << 20) + b"{}", path)[0] == 413
    assert decide(review, json.dumps({"choice": "x" * 900_000}))[0] == 400
    assert review.decisions.latest() == before


def test_what_is_not_there_is_said_to_be(review: Served) -> None:
    for path in ("sample/40", "picture/99999999999999999999", "nothing", "../store.py", "x/y"):
        assert ask(review, f"/{TOKEN}/{path}")[0] == 404
    assert ask(review, f"/{TOKEN}/sample/{'9' * 5000}")[0] in (400, 404)
    for query in ("scope=all", "shown=x", "order=x", "given=x", "given=" + "9" * 5000):
        assert ask(review, f"/{TOKEN}/queue?{query}")[0] == 400
    assert json.loads(ask(review, f"/{TOKEN}/queue?given={10**30}")[1])["places"] == []
    for since, status in (("x", 400), ("9" * 5000, 400), (-1, 200), (10**30, 200)):
        assert ask(review, f"/{TOKEN}/state?since={since}")[0] == status


def test_only_a_tab_that_is_behind_gets_all_decisions(review: Served) -> None:
    for place, since in enumerate((0, 1, 0, "x", None, [[]], 10**30)):
        body = {"place": place, "choice": "keep", "since": since}
        answer = json.loads(decide(review, json.dumps(body))[1])
        told = [place] if since == place else [*range(place + 1)]
        assert [each for each, _ in answer["decided"]] == told
        assert (answer["revision"], answer["all"]) == (place + 1, since != place)
    answer = json.loads(ask(review, f"/{TOKEN}/state?since=7")[1])
    assert (answer["decided"], answer["counts"]["decided"]) == ([], 7)
    answer = json.loads(decide(review, json.dumps({"since": 7}), "undo")[1])
    assert answer["decided"] == [[6, None]]


def test_nobody_else_on_the_network_can_reach_it(review: Served) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing; the system says by which address
        except OSError:
            pytest.skip("has no network")
        mine = probe.getsockname()[0]
    if mine.startswith("127."):
        pytest.skip("has no address but its own")
    with pytest.raises(OSError, match="refused"):
        socket.create_connection((mine, review.port), timeout=60)
