"""What several tests of pages share."""

import pytest
from array_audits import Written
from audits import make_photos

from labelproof.audit.samples import open_samples
from labelproof.report.audit import write_audit_page


@pytest.fixture(scope="session")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Written:
    """An audit of 300 pictures in five classes, and its page."""
    folder = tmp_path_factory.mktemp("photos")
    audit = make_photos(folder / "photos", samples=300, names=("ant", "bee", "cat", "dog", "elk"))
    return audit, write_audit_page(folder / "report.html", audit, open_samples(audit))
