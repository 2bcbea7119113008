"""The wheel builds, installs into an empty environment, and works there without the checkout."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def run(*command: str, cwd: Path) -> str:
    result = subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False)
    assert result.returncode == 0, f"{' '.join(command)}\n{result.stdout}\n{result.stderr}"
    return result.stdout


@pytest.mark.slow
def test_the_wheel_installs_into_an_empty_environment(tmp_path: Path) -> None:
    run(
        sys.executable, "-m", "build", "--wheel", "--outdir", str(tmp_path), str(ROOT), cwd=tmp_path
    )
    (wheel,) = tmp_path.glob("*.whl")
    run(sys.executable, "-m", "venv", str(tmp_path / "empty"), cwd=tmp_path)
    python = str(tmp_path / "empty" / "bin" / "python")
    constraints = str(ROOT / "constraints.txt")
    # Not compiled: torch alone has some thousand files, of which this loads a part.
    install = ("install", "--quiet", "--no-compile", "-c", constraints, str(wheel))
    run(python, "-m", "pip", *install, cwd=tmp_path)
    program = str(tmp_path / "empty" / "bin" / "labelproof")
    assert run(program, "losses", "nce+mae", cwd=tmp_path).startswith("nce+mae")
    # The page's template and the type marker are data, which a wheel forgets easily.
    where = "import labelproof, pathlib; print(pathlib.Path(labelproof.__file__).parent)"
    installed = Path(run(python, "-c", where, cwd=tmp_path).strip())
    assert (installed / "py.typed").exists()
    assert (installed / "report" / "templates" / "demo.html").exists()
    assert ROOT not in installed.parents
