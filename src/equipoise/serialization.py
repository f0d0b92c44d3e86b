"""Serialise policies, objectives and rules by class name: equality, repr, plain data and JSON for named values."""

from __future__ import annotations

import dataclasses
import inspect
import json
import math
from abc import ABC
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

from equipoise.errors import InvalidInput, UnknownName

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


class Value(ABC):
    """Base class of policies, objectives and rules: frozen keyword-only dataclasses, or classes without parameters.

    A direct subclass starts a family (`Policy`, `Objective`); its subclasses are registered by their class name, which
    is what JSON contains. Defining a class is enough to make it readable by name.
    """

    _family: ClassVar[dict[str, type[Any]]]
    _family_name: ClassVar[str]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if Value in cls.__bases__:
            cls._family = {}
            cls._family_name = cls.__name__.lower()
            return
        known = cls._family.get(cls.__name__)
        if known is not None and known.__module__ != cls.__module__:
            raise InvalidInput(
                f"{cls._family_name} names must be unique; {cls.__name__} is already defined in {known.__module__}"
            )
        cls._family[cls.__name__] = cls

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Return the class names of this family that `from_dict` can read."""
        return tuple(sorted(name for name, kind in cls._family.items() if not inspect.isabstract(kind)))

    @classmethod
    def fields_of(cls, name: str) -> dict[str, dataclasses.Field[Any]]:
        """Return the parameters of the class with that name in this family."""
        if name not in cls.names():
            raise UnknownName(f"unknown {cls._family_name} {name!r}; known are {', '.join(cls.names())}")
        return {field.name: field for field in cls._family[name]._class_fields()}

    def to_dict(self) -> dict[str, Any]:
        """Return the name and all parameters as plain data."""
        data: dict[str, Any] = {"name": type(self).__name__}
        for field in self._fields():
            data[field.name] = plain(getattr(self, field.name))
        return data

    @classmethod
    def from_dict(cls, data: Any) -> Self:
        """Read a value that `to_dict` wrote; omitted parameters keep their defaults."""
        family = cls._family_name
        if not isinstance(data, dict) or not isinstance(data.get("name"), str):
            raise InvalidInput(f"a {family} must be an object with a name; got {data!r}")
        name = data["name"]
        fields = cls.fields_of(name)
        kind = cls._family[name]
        if not issubclass(kind, cls):
            raise InvalidInput(f"expected a {cls.__name__}; got {name}")
        parameters = {key: value for key, value in data.items() if key != "name"}
        unknown = sorted(set(parameters) - set(fields))
        if unknown:
            allowed = ", ".join(fields) or "none"
            raise UnknownName(f"{name} has no parameter {', '.join(unknown)}; allowed are {allowed}")
        missing = [key for key, field in fields.items() if key not in parameters and _is_required(field)]
        if missing:
            raise InvalidInput(f"{name} needs the parameter {', '.join(missing)}")
        return kind(**parameters)

    def to_json(self) -> str:
        """Return the value as one line of JSON."""
        return json.dumps(self.to_dict())

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read a value that `to_json` wrote."""
        try:
            data = json.loads(text)
        except (TypeError, json.JSONDecodeError) as error:
            raise InvalidInput(f"a {cls._family_name} must be valid JSON; {error}") from error
        return cls.from_dict(data)

    @classmethod
    def _class_fields(cls) -> tuple[dataclasses.Field[Any], ...]:
        """Return the parameters; a class that is not a dataclass must have none."""
        if dataclasses.is_dataclass(cls):
            return dataclasses.fields(cast("type[DataclassInstance]", cls))
        if cls.__init__ is not object.__init__:
            raise cls._no_dataclass("a method __init__")
        return ()

    def _fields(self) -> tuple[dataclasses.Field[Any], ...]:
        fields = self._class_fields()
        if not dataclasses.is_dataclass(self):
            for name in vars(self):
                if not isinstance(inspect.getattr_static(type(self), name, None), cached_property):
                    raise self._no_dataclass(f"the attribute {name}")
        return fields

    @classmethod
    def _no_dataclass(cls, got: str) -> InvalidInput:
        return InvalidInput(
            f"{cls.__name__} must be a dataclass, so that its parameters can be recorded; got a plain class with {got}",
            hint="decorate the class with @dataclass(frozen=True, kw_only=True)",
        )

    def _set(self, **parameters: Any) -> None:
        """Replace parameters by their checked values; for `__post_init__` only."""
        for name, value in parameters.items():
            object.__setattr__(self, name, value)

    # For plain classes; dataclasses define their own.
    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        try:
            fields = self._fields()
        except InvalidInput:  # repr must not raise: to_dict reports the error where it matters
            return object.__repr__(self)
        shown = (
            f"{field.name}={getattr(self, field.name)!r}"
            for field in fields
            if _is_required(field) or getattr(self, field.name) != _default(field)
        )
        return f"{type(self).__name__}({', '.join(shown)})"


def plain(value: Any) -> Any:
    """Convert a parameter to plain data: values by name, arrays and tuples as lists."""
    if isinstance(value, Value):
        return value.to_dict()
    if hasattr(value, "tolist"):
        return value.tolist()
    return [plain(one) for one in value] if isinstance(value, tuple) else value


def json_data(value: Any) -> Any:
    """Convert a record to data that JSON can hold: instants as text, and null for numbers that are not finite.

    Examples
    --------
    >>> json_data({"shares": (0.5, float("inf"))})
    {'shares': [0.5, None]}
    """
    if isinstance(value, Value):
        return json_data(value.to_dict())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: json_data(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if hasattr(value, "_asdict"):
        return json_data(value._asdict())
    if isinstance(value, dict):
        return {name: json_data(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [json_data(one) for one in value]
    if hasattr(value, "tolist"):
        return json_data(value.tolist())
    if hasattr(value, "isoformat"):
        return value.isoformat()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return field.default


def _is_required(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
