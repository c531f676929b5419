"""Objects of the providers' SDKs, without importing any of them.

All of them are pydantic models. What matters is that they come out as the provider sent
them: with its names, and without what the SDK added.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

# What SDKs parse for their callers beside the provider's own fields. No provider takes
# it back. Only at these places, since a tool's arguments may have such names.
_PARSED: dict[str, Any] = dict.fromkeys(
    ("parsed", "parsed_output", "parsed_arguments"), True
)
_MESSAGE: dict[str, Any] = {
    **_PARSED,
    "content": {"__all__": _PARSED},
    "tool_calls": {"__all__": {"function": _PARSED}},
}
_ADDED: dict[str, Any] = {
    **_MESSAGE,
    "choices": {"__all__": {"message": _MESSAGE}},
    "output": {"__all__": _MESSAGE},
}


class Model(Protocol):
    """A pydantic model, such as the SDKs of the providers give."""

    @property
    def model_dump(self) -> Callable[..., dict[str, Any]]:
        """Give the fields as a dict."""


def plain(value: Any) -> dict[str, Any]:
    """The fields of a model as the provider sent them.

    Errors: TypeError for what isn't a model.
    """
    if not hasattr(value, "model_dump"):
        raise TypeError(f"{type(value).__name__} can't be written as JSON")
    fields: dict[str, Any] = value.model_dump(
        mode="json", by_alias=True, exclude_unset=True, exclude=_ADDED, warnings=False
    )
    return fields
