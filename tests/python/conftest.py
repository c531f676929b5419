"""The stand-in server of the examples, for tests that need a provider."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="session")
def stand_ins() -> ModuleType:
    """The module examples/stand_in.py."""
    spec = importlib.util.spec_from_file_location("stand_in", EXAMPLES / "stand_in.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def stand_in(stand_ins: ModuleType) -> Iterator[Any]:
    """A provider on localhost."""
    with stand_ins.running() as server:
        yield server
