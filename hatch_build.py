"""Read the package's YAML files when its wheel is built, so that no run has to."""

import hashlib
import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from ruamel.yaml import YAML

ROOT = Path(__file__).parent
sys.path.insert(0, str(ROOT))


class ParsedFiles(BuildHookInterface):  # type: ignore[type-arg]
    """Adds ``analyze/parsed.json`` to the wheel; see ``analyze/packaged.py``."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the file; an editable installation has none, there files change."""
        if version != "standard":
            return
        self._folder = TemporaryDirectory()
        file = Path(self._folder.name) / "parsed.json"
        file.write_text(json.dumps(parsed_files(), allow_nan=False), encoding="utf-8")
        build_data["force_include"][str(file)] = "analyze/parsed.json"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the file, now that the wheel holds it."""
        del build_data, artifact_path
        if version == "standard":
            self._folder.cleanup()


def parsed_files() -> dict[str, Any]:
    """Return what each file holds, rules without their tests, by the digest of its text."""
    from analyze.engine.yaml_file import read_yaml  # noqa: PLC0415

    rules = {file: read_yaml(file, without="tests").data for file in ROOT.glob("rules/**/*.yaml")}
    tables = {file: YAML(typ="safe").load(file) for file in ROOT.glob("analyze/**/*.yaml")}
    return {
        hashlib.sha256(file.read_bytes()).hexdigest(): data
        for file, data in {**rules, **tables}.items()
    }
