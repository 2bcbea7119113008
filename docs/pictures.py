"""Draw the pictures of the guide to the audit: images, rows, text and a hundred classes.

    python docs/pictures.py FOLDER

FOLDER keeps the data and the audits; what is there is not audited again. The pictures need
Chromium and playwright, and the audit of images takes some minutes.
"""

from __future__ import annotations

import contextlib
import io
import random
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from PIL import Image
from sklearn.datasets import load_wine

import labelproof
from labelproof.audit.folder import Audit
from labelproof.data import DATASETS
from labelproof.noise.matrices import SUPER_CLASSES

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

ROOT = Path(__file__).parents[1]
LARGEST = 150_000
WIDTH = 1000


def audit_images(output: Path) -> None:
    """The folder and the settings of the tutorial."""
    drawing = [sys.executable, str(ROOT / "examples" / "planted_errors.py"), "shapes/"]
    subprocess.run(drawing, cwd=output.parent, check=True)  # noqa: S603
    labelproof.audit(
        output.parent / "shapes",
        network="cnn8(width=16)",
        augmentation="resized-crop:32,flip",
        learning_rate=0.03,
        epochs=40,
        output=output,
    )


def audit_rows(output: Path) -> None:
    """Wines, every tenth with another cultivar on its label."""
    wine: Any = load_wine(as_frame=True)
    names, true = np.array(["Barolo", "Grignolino", "Barbera"]), wine.target.to_numpy()
    given = np.where(np.arange(len(true)) % 10 == 0, (true + 1) % 3, true)
    table = output.parent / "wine.csv"
    wine.data.assign(cultivar=names[given]).to_csv(table, index=False)
    labelproof.audit(table, "cultivar", output=output)


MESSAGES = {
    "billing": (
        ("My card was charged", "I was billed", "You debited my account"),
        ("twice for one month", "for a plan that I cancelled in March", "before the trial ended"),
        ("Please refund it.", "I expect the money back this week.", "Who corrects the invoice?"),
    ),
    "delivery": (
        ("The parcel", "My order", "The replacement"),
        ("never arrived", "has been on one truck for nine days", "was left at my old address"),
        ("When will it be sent again?", "Please ask the courier.", "I have waited long enough."),
    ),
    "login": (
        ("The reset link", "The app", "My password"),
        ("expires before the mail comes", "asks for a code that never comes", "is refused"),
        ("How do I get back in?", "I tried three browsers.", "Please unlock the account."),
    ),
}


def audit_text(output: Path) -> None:
    """Messages of customers, one in twelve under another topic."""
    generator = random.Random(0)  # noqa: S311
    rows = []
    for number in range(600):
        topic = list(MESSAGES)[number % 3]
        first, second, third = (generator.choice(parts) for parts in MESSAGES[topic])
        channel = generator.choices(("mail", "chat", "phone"), (6, 3, 2 * (topic != "login")))[0]
        given = topic if number % 12 else generator.choice([*{*MESSAGES} - {topic}])
        rows.append((channel, f"{first} {second}. {third} Ticket {number}.", given))
    table = output.parent / "messages.csv"
    pd.DataFrame(rows, columns=["channel", "message", "topic"]).to_csv(table, index=False)
    labelproof.audit(table, "topic", output=output)


def audit_hundred_classes(output: Path) -> None:
    """Simulated predictions; classes are confused with others of their super-class of CIFAR-100."""
    generator = np.random.default_rng(0)
    family = np.empty(100, np.int64)
    for number, members in enumerate(SUPER_CLASSES):
        family[list(members)] = number
    true = generator.integers(100, size=20_000)
    logits = generator.gumbel(size=(len(true), 100)) + 2.5 * (family[true][:, None] == family)
    logits[np.arange(len(true)), true] += 4
    probabilities = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    relative = np.array([generator.choice(SUPER_CLASSES[family[label]]) for label in true])
    wrong = generator.random((2, len(true))) < [[0.15], [0.03]]
    anything = generator.integers(100, size=len(true))
    given = np.where(wrong[0], relative, np.where(wrong[1], anything, true))
    labelproof.audit(
        labels=given,
        probabilities=probabilities,
        class_names=DATASETS["cifar100"].class_names,
        output=output,
    )


AUDITS: dict[str, Callable[[Path], None]] = {
    "shapes": audit_images,
    "wine": audit_rows,
    "messages": audit_text,
    "hundred": audit_hundred_classes,
}


def keep(page: Page, name: str, *, height: int | None = None) -> None:
    """Keep what a page shows, in as few colours as do, so that the docs stay small."""
    seen = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    seen = seen.crop((0, 0, seen.width, height or seen.height))
    target = ROOT / "docs" / "pictures" / name
    for colours in (256, 128, 64):
        # Not dithered, for noise does not compress; and small patches keep their colours.
        few = seen.quantize(colours, Image.Quantize.MAXCOVERAGE, kmeans=3, dither=Image.Dither.NONE)
        few.save(target, optimize=True)
        if target.stat().st_size < LARGEST:
            print(f"{name}: {target.stat().st_size:,} bytes")
            return
    raise SystemExit(f"{name}: {target.stat().st_size:,} bytes, expected fewer than {LARGEST:,}")


@contextlib.contextmanager
def opened(
    browser: Browser, address: str, *, width: int = WIDTH, height: int = 840, scheme: str = "light"
) -> Iterator[Page]:
    """A page in a window of its own."""
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme=scheme,  # pyright: ignore[reportArgumentType]
        reduced_motion="reduce",
        has_touch=width < WIDTH,
    )
    page = context.new_page()
    page.goto(address)
    yield page
    context.close()


@contextlib.contextmanager
def reviewed(audit: Path) -> Iterator[str]:
    """The address of a review while it is served."""
    program = subprocess.Popen(  # noqa: S603
        [sys.executable, "-u", "-m", "labelproof", "review", str(audit), "--no-open"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert program.stdout is not None  # noqa: S101
    found = (re.search(r"http://127\.0\.0\.1:\d+/\S+/", line) for line in program.stdout)
    yield next(address.group() for address in found if address)
    program.send_signal(signal.SIGINT)
    program.wait()


def draw(browser: Browser, folder: Path) -> None:
    """All pictures, from audits in a folder."""
    reports = {name: (folder / f"{name}-audit/report.html").as_uri() for name in AUDITS}
    with opened(browser, reports["shapes"]) as page:
        page.wait_for_selector(".card")
        # Down to what to do next, where the path of this very folder stands.
        box = page.locator("#confusions").bounding_box()
        assert box is not None  # noqa: S101
        keep(page, "audit-finding.png", height=min(int(box["y"]) - 16, 840))
    for scheme in ("light", "dark"):
        with opened(browser, reports["shapes"], scheme=scheme) as page:
            page.locator("#samples").scroll_into_view_if_needed()
            page.locator("#samples").evaluate("at => at.scrollIntoView()")
            keep(page, f"audit-suspects-{scheme}.png")
    with opened(browser, reports["wine"], height=760) as page:
        page.locator("#status").evaluate("at => at.scrollIntoView()")
        keep(page, "audit-rows.png")
    with opened(browser, reports["messages"], height=700) as page:
        page.get_by_label("containing").fill("refund")
        page.locator("#controls").evaluate("at => at.scrollIntoView()")
        keep(page, "audit-text.png")
    with opened(browser, reports["hundred"], height=1020) as page:
        page.locator(".matrix").first.evaluate("at => at.scrollIntoView()")
        page.mouse.move(*commonest(page))
        keep(page, "audit-hundred-classes.png")
    with opened(browser, reports["hundred"], width=390, height=700) as page:
        page.locator(".matrix").first.evaluate("at => at.scrollIntoView()")
        page.locator(".matrix .wide").first.evaluate("at => at.scrollTo(480, 480)")
        page.touchscreen.tap(*commonest(page))
        keep(page, "audit-hundred-classes-phone.png")
    for name, picture in (("shapes", "audit-review.png"), ("wine", "audit-review-rows.png")):
        with (
            reviewed(folder / f"{name}-audit") as address,
            opened(browser, address, height=740) as page,
        ):
            page.wait_for_selector("#stage[data-place]")
            page.wait_for_load_state("networkidle")
            keep(page, picture)


def commonest(page: Page) -> tuple[float, float]:
    """Where the commonest confusion is of those that can be seen of a matrix."""
    x, y = page.evaluate("""() => {
        const counts = JSON.parse(document.getElementById("matrices").textContent).confusion;
        const box = document.querySelector(".heat-cells").getBoundingClientRect();
        const side = box.width / counts.length;
        const cells = counts.flatMap((row, y) => row.map((count, x) => [count * (x !== y), x, y]))
            .map(([count, x, y]) => [count, x * side + box.left + 4, y * side + box.top + 4])
            .filter(([, x, y]) => document.elementFromPoint(x, y)?.closest(".heat-cells"));
        return cells.sort((first, second) => second[0] - first[0])[0].slice(1);
    }""")
    return x, y


def main() -> None:
    """Make the audits that are missing, and draw."""
    from playwright.sync_api import sync_playwright

    folder = Path(sys.argv[1]).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    for name, make in AUDITS.items():
        output = folder / f"{name}-audit"
        if (output / "audit.json").exists():
            Audit.read(output).report(output / "report.html")
        else:
            make(output)
    with sync_playwright() as engine:
        browser = engine.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        draw(browser, folder)
        browser.close()


if __name__ == "__main__":
    main()
