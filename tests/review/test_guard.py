import http.client
import json
import socket
from collections.abc import Iterator
from pathlib import Path

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
    values: object = None,
) -> tuple[int, str, http.client.HTTPMessage]:
    connection = http.client.HTTPConnection("127.0.0.1", review.port, timeout=10)
    headers = {"Host": host or f"127.0.0.1:{review.port}"}
    if origin is not None:
        headers["Origin"] = origin
    body = None if values is None else json.dumps(values)
    connection.request(method, path, body=body, headers=headers)
    answer = connection.getresponse()
    text = answer.read().decode("utf-8", "replace")
    connection.close()
    return answer.status, text, answer.headers


PATHS = ("", "start", "queue", "state", "sample/0", "picture/0", "reviewed.csv", "review.js")


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("token", ["", "/", "/wrong", "/wröng", f"/{TOKEN}x", f"/x/{TOKEN}"])
def test_without_the_token_nothing_is_answered(review: Served, path: str, token: str) -> None:
    from urllib.parse import quote

    status, text, _ = ask(review, quote(f"{token}/{path}"))
    assert status == 403
    assert "lacks this review's token" in text


@pytest.mark.parametrize("path", PATHS)
def test_with_it_everything_is_and_stays_in_no_cache(review: Served, path: str) -> None:
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
    values = {"place": 0, "choice": "keep", "since": 0}
    for origin in (None, "null", "http://evil.example", f"https://127.0.0.1:{review.port}"):
        for path in ("decide", "undo"):
            asked = ask(review, f"/{TOKEN}/{path}", method="POST", origin=origin, values=values)
            assert asked[0] == 403
    assert review.decisions.revision == 0


def own(review: Served) -> str:
    return f"http://127.0.0.1:{review.port}"


@pytest.mark.parametrize(
    "values",
    [
        {},
        [],
        "keep",
        {"place": 0},
        {"place": 40, "choice": "keep", "since": 0},
        {"place": -1, "choice": "keep", "since": 0},
        {"place": True, "choice": "keep", "since": 0},
        {"place": 0, "choice": "burn", "since": 0},
        {"place": 0, "choice": "another", "since": 0},
        {"place": 0, "choice": "another", "label": 3, "since": 0},
        {"place": 0, "choice": "another", "label": "red", "since": 0},
        {"place": 0, "choice": ["keep"], "since": 0},
    ],
)
def test_nonsense_is_refused_and_keeps_nothing(review: Served, values: object) -> None:
    before = review.decisions.revision
    status, text, _ = ask(
        review, f"/{TOKEN}/decide", method="POST", origin=own(review), values=values
    )
    assert status == 400, text
    assert text
    assert review.decisions.revision == before


def test_what_is_not_there_is_said_to_be(review: Served) -> None:
    for path in ("sample/40", "picture/99999999999999999999", "nothing", "../store.py", "x/y"):
        assert ask(review, f"/{TOKEN}/{path}")[0] == 404
    for query in ("scope=all", "shown=x", "order=x", "given=x"):
        assert ask(review, f"/{TOKEN}/queue?{query}")[0] == 400


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
        socket.create_connection((mine, review.port), timeout=5)


def test_no_file_has_been_left_out_of_the_list() -> None:
    import labelproof.review
    from labelproof.review.application import _STATIC

    assert labelproof.review.__file__ is not None
    static = Path(labelproof.review.__file__).parent / "static"
    assert {file.name for file in static.iterdir()} == set(_STATIC)


@pytest.mark.parametrize("since", [{}, {"since": "x"}, {"since": 0.5}])
def test_what_is_refused_is_not_kept(review: Served, since: dict[str, object]) -> None:
    before = review.decisions.revision
    values = {"place": 1, "choice": "keep", **since}
    origin = f"http://127.0.0.1:{review.port}"
    status, _, _ = ask(review, f"/{TOKEN}/decide", method="POST", origin=origin, values=values)
    assert status == 400
    assert review.decisions.revision == before
