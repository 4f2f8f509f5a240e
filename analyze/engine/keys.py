"""What files of keys and values are described by: plain dataclasses, checked by pydantic.

pydantic takes a tenth of a short run to import, so only what people write is checked with it
(:mod:`analyze.engine.validation`). What was checked before it was packaged is just filled in.
"""

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, get_args, get_type_hints

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler
    from pydantic_core import CoreSchema

KeysT = TypeVar("KeysT", bound="Keys")

_CONVERTED = ("bool", "int", "float", "str")
"""Kinds of values that pydantic makes of others, such as 1 of "1", unless it is told not to."""


class Keys:
    """Base of the dataclasses whose attributes are the keys of a mapping in a file."""

    SPELT: ClassVar[Mapping[str, str]] = {}
    """Keys that are no attributes in Python, such as ``from``, by the attribute that holds them."""

    __pydantic_config__: ClassVar[dict[str, Any]]
    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]

    def __init_subclass__(cls) -> None:
        """Let pydantic know the keys, and refuse all others."""
        cls.__pydantic_config__ = {"extra": "forbid", "alias_generator": cls.key_of}

    @classmethod
    def key_of(cls, attribute: str) -> str:
        """Return the key that an attribute holds the value of."""
        return cls.SPELT.get(attribute, attribute)


@dataclass(frozen=True)
class Limits:
    """What a value may be, beside its type; it is never converted from another kind.

    Attributes:
        pattern: regular expression that a text matches.
        min_length, max_length: in characters of a text, or items of a list.
        gt, ge, le: what a number is more than, at least, at most.
    """

    pattern: str | None = None
    min_length: int | None = None
    max_length: int | None = None
    gt: float | None = None
    ge: float | None = None
    le: float | None = None

    def __get_pydantic_core_schema__(
        self, source: Any, handler: "GetCoreSchemaHandler"
    ) -> "CoreSchema":
        """Tell pydantic."""
        schema: Any = handler(source)
        given = {name: limit for name, limit in vars(self).items() if limit is not None}
        strict = {"strict": True} if schema["type"] in _CONVERTED else {}
        return {**schema, **given, **strict}


_TYPES: dict[type[Keys], Mapping[str, Any]] = {}


def types_of(model: type[Keys]) -> Mapping[str, Any]:
    """Return the type of each key."""
    if model not in _TYPES:
        hints, fields = get_type_hints(model), dataclasses.fields(model)
        _TYPES[model] = {model.key_of(field.name): hints[field.name] for field in fields}
    return _TYPES[model]


def model_in(annotation: Any, is_model: Callable[[type], bool]) -> type[Any] | None:
    """Return the model of the mapping, or mappings, that a value of a type holds."""
    return next(_models_in(annotation, is_model), None)


def _models_in(annotation: Any, is_model: Callable[[type], bool]) -> Iterator[type[Any]]:
    if isinstance(annotation, type) and is_model(annotation):
        yield annotation
    for argument in get_args(annotation):
        yield from _models_in(argument, is_model)


def filled(model: type[KeysT], data: Mapping[str, Any]) -> KeysT:
    """Return keys and values that are known to be sound as their model, unchecked."""
    attributes = {model.key_of(field.name): field.name for field in dataclasses.fields(model)}
    types = types_of(model)
    return model(**{attributes[key]: _filled(types[key], value) for key, value in data.items()})


def _filled(annotation: Any, value: Any) -> Any:
    model = model_in(annotation, lambda part: issubclass(part, Keys))
    if model is None:
        return value
    if isinstance(value, list):
        return [_filled(annotation, item) for item in value]
    return filled(model, value) if isinstance(value, dict) else value
