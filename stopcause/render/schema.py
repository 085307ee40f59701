"""The wire format as JSON Schema: one document, its records told apart by `kind`; made from the models."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, TypeAdapter

from stopcause.receipts import model


def wire_schema() -> dict[str, Any]:
    """What a writer may write: JSON Schema 2020-12 with `$defs`, strict about unknown keys."""
    records: TypeAdapter[model.Record] = TypeAdapter(Annotated[model.Record, Field(discriminator="kind")])
    schema = records.json_schema()
    for name in schema["discriminator"]["mapping"].values():
        definition = schema["$defs"][name.rpartition("/")[2]]
        definition["required"] = sorted({"kind", *definition["required"]})  # a writer fills it in; a reader needs it
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"{model.SCHEMA}: one record, one line",
        **schema,
    }
