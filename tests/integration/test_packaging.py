"""The distribution: wheel and sdist are complete, light, and work away from the checkout."""

import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MAX_INSTALLED_BYTES = 250e6
INSTALLERS = {"pip", "setuptools", "wheel", "_distutils_hack", "pkg_resources"}


def run(*command: str | Path, cwd: Path) -> str:
    done = outcome(*command, cwd=cwd)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done.stdout


def outcome(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        list(map(str, command)),
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        env={key: value for key, value in os.environ.items() if key != "PYTHONPATH"},
    )


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist and the wheel built from it."""
    folder = tmp_path_factory.mktemp("dist")
    temporary = folder / "temporary"
    temporary.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(temporary))
        run(sys.executable, "-m", "build", "--outdir", folder, ROOT, cwd=folder)
    return folder


@pytest.fixture(scope="module")
def installed(distributions: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh virtual environment that holds the wheel and what it requires, nothing else."""
    folder = tmp_path_factory.mktemp("installed")
    run(sys.executable, "-m", "venv", folder / "venv", cwd=folder)
    wheel = next(distributions.glob("*.whl"))
    run(folder / "venv/bin/pip", "install", "--quiet", wheel, cwd=folder)
    return folder


def site_packages(installed: Path) -> Path:
    return next(installed.glob("venv/lib/python*/site-packages"))


def test_building_leaves_no_temporary_files(distributions: Path) -> None:
    assert not list((distributions / "temporary").iterdir())


def test_the_wheel_holds_rules_and_samples(distributions: Path) -> None:
    names = zipfile.ZipFile(next(distributions.glob("*.whl"))).namelist()
    assert "analyze/_rules/copies/hidden-memcpy.yaml" in names
    assert "analyze/_sample_traces/synthetic-naive.json.gz" in names
    assert "analyze/kernels/names.yaml" in names
    assert {"analyze/py.typed", "capture/py.typed", "capture/manifest.schema.json"} <= set(names)
    assert not [name for name in names if name.startswith(("tests", "benchmarks"))]


def test_the_sdist_holds_what_a_developer_needs(distributions: Path) -> None:
    with tarfile.open(next(distributions.glob("*.tar.gz"))) as archive:
        names = {name.split("/", 1)[-1] for name in archive.getnames()}
    assert {"README.md", "LICENSE", "rules/copies/hidden-memcpy.yaml", "tests/conftest.py"} <= names


def test_the_installed_commands_check_a_sample(installed: Path) -> None:
    sample = site_packages(installed) / "analyze/_sample_traces/synthetic-naive.json.gz"
    for command in ("analyze", "kinetolint"):
        output = run(installed / "venv/bin" / command, sample, "--format", "json", cwd=installed)
        assert json.loads(output)["findings"][0]["code"] == "COPY101"


def test_capture_without_torch_says_what_to_install(installed: Path) -> None:
    command = installed / "venv/bin/capture"
    assert "--variant" in run(command, "--help", cwd=installed)
    assert json.loads(run(command, "schema", cwd=installed))["title"] == "capture.json"
    done = subprocess.run([command], capture_output=True, text=True, check=False, cwd=installed)
    assert done.returncode == 3
    assert "capture needs torch" in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_installation_is_light_and_has_no_torch(installed: Path) -> None:
    packages = [path for path in site_packages(installed).iterdir() if path.name not in INSTALLERS]
    assert "torch" not in {path.name for path in packages}
    files = [file for path in packages for file in ([path] if path.is_file() else path.rglob("*"))]
    size = sum(f.stat().st_size for f in files if f.is_file() and "pip-" not in str(f))
    assert size < MAX_INSTALLED_BYTES


def imported(installed: Path, argument: str, *modules: str) -> str:
    """Run ``analyze`` with an argument; return which of the modules it imported, as a list."""
    code = (
        f"import sys; sys.argv = ['analyze', {argument!r}]\n"
        "from analyze.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        f"print([name for name in {modules!r} if name in sys.modules])"
    )
    output = run(installed / "venv/bin/python", "-c", code, cwd=installed)
    return output.splitlines()[-1]


def test_help_imports_nothing_heavy(installed: Path) -> None:
    heavy = ("polars", "pydantic", "ruamel.yaml", "orjson", "torch")
    assert imported(installed, "--help", *heavy) == "[]"


def test_packaged_rules_are_what_checking_them_gives(installed: Path) -> None:
    code = (
        "from dataclasses import replace\n"
        "from analyze.engine.loading import load_rules\n"
        "checked, quick = load_rules(), load_rules(tests=False)\n"
        "whole = [replace(rule.model, tests=[]) for rule in checked]\n"
        "print(len(quick), whole == [rule.model for rule in quick])"
    )
    count, same = run(installed / "venv/bin/python", "-c", code, cwd=installed).split()
    assert (int(count), same) == (len(list((ROOT / "rules").glob("*/*.yaml"))), "True")


def test_data_files_are_what_reading_them_gives(installed: Path) -> None:
    code = (
        "from pathlib import Path; import analyze; from analyze.packaged import as_built\n"
        "from ruamel.yaml import YAML\n"
        "for file in sorted(Path(analyze.__file__).parent.glob('[!_]*/**/*.yaml')):\n"
        "    print(file.name, as_built(file.read_bytes()) == YAML(typ='safe').load(file))"
    )
    output = run(installed / "venv/bin/python", "-c", code, cwd=installed)
    assert output == "names.yaml True\npeaks.yaml True\nknown.yaml True\n"


def test_an_installed_rule_that_was_edited_is_read_and_checked(installed: Path) -> None:
    sample = site_packages(installed) / "analyze/_sample_traces/synthetic-naive.json.gz"
    rule = site_packages(installed) / "analyze/_rules/copies/hidden-memcpy.yaml"
    text = rule.read_text()
    try:
        rule.write_text(text.replace("Device-to-device copy", "An edited title"))
        assert "An edited title" in run(installed / "venv/bin/analyze", sample, cwd=installed)
        rule.write_text(text.replace("\nexpect: ", "\nexpect: m == 0 or "))
        done = outcome(installed / "venv/bin/analyze", sample, cwd=installed)
    finally:
        rule.write_text(text)
    assert done.returncode == 4
    assert "error: unknown name 'm'" in done.stderr


@pytest.mark.parametrize("damaged", ["", "[1", '["x"]', "null", "{}"])
def test_without_what_the_build_read_the_yaml_is_read(installed: Path, damaged: str) -> None:
    sample = site_packages(installed) / "analyze/_sample_traces/synthetic-naive.json.gz"
    parsed = site_packages(installed) / "analyze/parsed.json"
    text = parsed.read_text()
    try:
        parsed.write_text(damaged)
        output = run(installed / "venv/bin/analyze", sample, cwd=installed)
    finally:
        parsed.write_text(text)
    assert output == run(installed / "venv/bin/analyze", sample, cwd=installed)


@pytest.mark.parametrize("kind", ["link", "folder", "fifo"])
def test_an_installed_rule_that_cannot_be_read_is_named(installed: Path, kind: str) -> None:
    sample = site_packages(installed) / "analyze/_sample_traces/synthetic-naive.json.gz"
    rule = site_packages(installed) / "analyze/_rules/copies/hidden-memcpy.yaml"
    aside = rule.rename(installed / "aside.yaml")
    try:
        if kind == "link":
            rule.symlink_to("/nonexistent")
        elif kind == "folder":
            rule.mkdir()
        else:
            os.mkfifo(rule)
        done = outcome(installed / "venv/bin/analyze", sample, cwd=installed)
    finally:
        rule.rmdir() if kind == "folder" else rule.unlink()
        aside.rename(rule)
    assert done.returncode == 4
    assert "hidden-memcpy.yaml" in done.stderr.splitlines()[0]


def test_a_run_with_packaged_rules_alone_reads_no_yaml(installed: Path) -> None:
    sample = site_packages(installed) / "analyze/_sample_traces/synthetic-naive.json.gz"
    assert imported(installed, str(sample), "polars", "pydantic", "ruamel.yaml") == "['polars']"


def test_an_editable_install_sees_rule_edits_live(tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    for name in ("analyze", "capture", "rules", "sample_traces"):
        shutil.copytree(ROOT / name, checkout / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, checkout / name)
    run(sys.executable, "-m", "venv", "--system-site-packages", tmp_path / "venv", cwd=tmp_path)
    python = tmp_path / "venv/bin/python"
    own_packages = next(path for path in map(Path, sys.path) if path.name == "site-packages")
    site = next((tmp_path / "venv").glob("lib/python*/site-packages"))
    (site / "dependencies.pth").write_text(f"{own_packages}\n")
    run(python, "-m", "pip", "install", "--quiet", "--no-deps", "-e", checkout, cwd=tmp_path)
    rule = checkout / "rules/copies/hidden-memcpy.yaml"
    rule.write_text(rule.read_text().replace("Device-to-device copy", "An edited title"))
    sample = checkout / "sample_traces/synthetic-naive.json.gz"
    output = run(tmp_path / "venv/bin/analyze", sample, cwd=tmp_path)
    assert "An edited title" in output
