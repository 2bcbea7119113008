"""The wheel works without the checkout, beside the packages that it asks for and no others."""

import re
import subprocess
import sys
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parent.parent


def run(*command: str, cwd: Path) -> str:
    result = subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False)
    assert result.returncode == 0, f"{' '.join(command)}\n{result.stdout}\n{result.stderr}"
    return result.stdout


def required_by(found: Distribution, known: dict[str, Distribution]) -> None:
    """Collect what a package needs here, and what that needs, without the extras of others."""
    for text in found.requires or []:
        needed = Requirement(text)
        name = re.sub(r"[-_.]+", "-", needed.name).lower()
        wanted = needed.marker is None or needed.marker.evaluate({"extra": ""})
        if not wanted or name in known:
            continue
        try:
            known[name] = distribution(name)
        except PackageNotFoundError:
            assert found.metadata["Name"] != "labelproof", f"{name} is not installed"
            continue
        required_by(known[name], known)


def test_the_wheel_works_with_what_it_asks_for(tmp_path: Path) -> None:
    build = ("-m", "build", "--wheel", "--outdir", str(tmp_path), str(ROOT))
    run(sys.executable, *build, cwd=tmp_path)
    (wheel,) = tmp_path.glob("*.whl")
    run(sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "empty"), cwd=tmp_path)
    (packages,) = (tmp_path / "empty").glob("lib/python*/site-packages")
    install = ("-m", "pip", "install", "--quiet", "--no-deps", "--no-compile")
    run(sys.executable, *install, "--target", str(packages), str(wheel), cwd=tmp_path)
    # Installed anew they would take minutes, and gigabytes: those that are here are linked.
    known: dict[str, Distribution] = {}
    (notes,) = packages.glob("labelproof-*.dist-info")
    required_by(Distribution.at(notes), known)
    for found in known.values():
        for name in {file.parts[0] for file in found.files or []} - {".."}:
            link = packages / name
            if not link.exists() and name != "__pycache__":
                link.symlink_to(Path(str(found.locate_file(name))))
    python = str(tmp_path / "empty" / "bin" / "python")
    where = "import labelproof; print(labelproof.__file__)"
    installed = Path(run(python, "-I", "-c", where, cwd=tmp_path).strip()).parent
    assert installed == packages / "labelproof"
    data = "import numpy as n; n.savez('t.npz', x=n.eye(40, dtype='f4'), y=n.arange(40) % 2)"
    run(python, "-I", "-c", data, cwd=tmp_path)
    fitted = run(*(python, "-I", "-m", "labelproof", "fit", "t.npz", "--epochs", "1"), cwd=tmp_path)
    assert "Next: labelproof predict t-fit" in fitted
    # The marker of its types is no code, which a wheel forgets easily; nor are the pages.
    assert (installed / "py.typed").exists()
    assert (tmp_path / "t-fit" / "audit" / "report.html").exists()
