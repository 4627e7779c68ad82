"""Registered drafts as documents: what the API takes and gives, and what ``drafts import`` reads."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from collector.domain.drafts import Measure, ModelConfig, Reference, Validation, Vocabulary
from collector.domain.errors import MalformedInput
from collector.domain.evidence import Evidence
from collector.storage.drafts import StoredDraft

MOST_POSITIONS = 1_024


class ValidationDocument(BaseModel):
    """What a draft's validation said; shares of 1, lengths with the target's own token."""

    model_config = ConfigDict(extra="forbid")

    accuracy: float | None = Field(default=None, ge=0, le=1, examples=[0.747])
    accuracy_at: list[float] = Field(default_factory=list, max_length=MOST_POSITIONS, examples=[[0.747, 0.7, 0.66]])
    measure: Measure = Field(default=Measure.UNKNOWN, description="what the figures count")
    temperature: float | None = Field(default=None, ge=0)
    vocabulary: Vocabulary = Field(
        default=Vocabulary.UNKNOWN, description="what becomes of tokens the draft does not have"
    )
    reference: Reference = Field(default=Reference.UNKNOWN, description="what drafts are compared with")
    draft_vocabulary_coverage: float | None = Field(default=None, ge=0, le=1)
    held_out: bool | None = None
    length: float | None = Field(
        default=None, ge=1, le=MOST_POSITIONS + 1, description="acceptance length, if measured"
    )
    length_depth: int | None = Field(default=None, ge=1, le=MOST_POSITIONS)
    replayed: bool = Field(default=False, description="counted along verify steps")
    dataset: str = Field(default="", max_length=500)
    count: float | None = Field(default=None, ge=0, description="tokens or samples it rests on")
    trainer: str = Field(default="", max_length=200)
    remarks: list[str] = Field(default_factory=list, max_length=20)
    source: str = Field(default="", max_length=500, description="where the figures were read")

    def figures(self, source: str) -> Validation:
        """The same as the analysis takes it.

        Raises:
            MalformedInput: it states no figure, or one that is no share.
        """
        at = tuple(self.accuracy_at)
        first = self.accuracy if self.accuracy is not None else at[0] if at else None
        if first is None and self.length is None:
            raise MalformedInput(
                "this validation states no figure", where=source, hint="give accuracy, accuracy_at or length"
            )
        for value in at:
            if not 0 <= value <= 1:
                raise MalformedInput(f"an accuracy of {value:g} is not possible", where=source, hint="0.747 for 74.7%")
        shown = ", ".join(f"{value:g}" for value in at) or f"{first if first is not None else self.length:g}"
        return Validation(
            accuracy=first,
            accuracy_at=at,
            measure=self.measure,
            measure_stated=self.measure is not Measure.UNKNOWN,
            trainer=self.trainer,
            temperature=self.temperature,
            draft_vocabulary_coverage=self.draft_vocabulary_coverage,
            vocabulary=self.vocabulary,
            reference=self.reference,
            held_out=self.held_out,
            length=self.length,
            length_depth=self.length_depth,
            replayed=self.replayed,
            dataset=self.dataset,
            count=self.count,
            remarks=tuple(self.remarks),
            evidence=(Evidence(self.source or source, None, shown),),
        )


class DraftDocument(BaseModel):
    """A draft to register: the name or path that servers are started with, its config, its validations."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=1_000)] = Field(
        examples=["org/model-eagle3"]
    )
    config: dict[str, Any] | None = Field(default=None, description="the draft's config.json")
    validations: list[ValidationDocument] = Field(default_factory=list, max_length=200)

    def parts(self, source: str) -> tuple[str, ModelConfig | None, list[Validation]]:
        """Name, config and figures.

        Raises:
            MalformedInput: a validation states no figure.
        """
        config = None if self.config is None else ModelConfig(f"{source}: config", self.config)
        return self.name, config, [validation.figures(source) for validation in self.validations]


class RegisteredDraft(DraftDocument):
    """A registered draft as lists show it; the figures can be registered again as they are."""

    id: int
    registered_at: float | None = Field(description="seconds since 1970")
    weights_digest: str = ""
    runs: int = Field(default=0, description="runs that were stored with it")


def registered(draft: StoredDraft) -> RegisteredDraft:
    """A stored draft as a document."""
    return RegisteredDraft(
        id=draft.id,
        name=draft.name or "(no name)",
        config=None if draft.config is None else dict(draft.config.raw),
        validations=[of_validation(validation) for validation in draft.validations],
        registered_at=draft.registered_at,
        weights_digest=draft.weights_digest,
        runs=draft.runs,
    )


def of_validation(validation: Validation) -> ValidationDocument:
    """Figures as a document."""
    return ValidationDocument(
        accuracy=validation.accuracy,
        accuracy_at=list(validation.accuracy_at),
        measure=validation.measure,
        temperature=validation.temperature,
        vocabulary=validation.vocabulary,
        reference=validation.reference,
        draft_vocabulary_coverage=validation.draft_vocabulary_coverage,
        held_out=validation.held_out,
        length=validation.length,
        length_depth=validation.length_depth,
        replayed=validation.replayed,
        dataset=validation.dataset,
        count=validation.count,
        trainer=validation.trainer,
        remarks=list(validation.remarks),
        source=validation.evidence[0].place if validation.evidence else "",
    )


def drafts_in(document: Any, source: str) -> list[DraftDocument]:
    """The drafts of a file: a list of documents, or an object that holds one under ``drafts``.

    Raises:
        MalformedInput: it is none, or one of them is not as it should be; the error names the field.
    """
    listed = document.get("drafts") if isinstance(document, dict) and "drafts" in document else document
    listed = listed if isinstance(listed, list) else [listed]
    known = set(DraftDocument.model_fields)
    found = []
    for number, item in enumerate(listed, 1):
        if not isinstance(item, dict):
            raise MalformedInput("a draft is an object with a name", where=f"{source}, draft {number}")
        given = {key: value for key, value in item.items() if key in known or key not in RegisteredDraft.model_fields}
        try:
            found.append(DraftDocument.model_validate(given))
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(str(part) for part in first["loc"])
            raise MalformedInput(
                f"{place} is not valid",
                why=first["msg"],
                where=f"{source}, draft {number}",
                hint="draftscope drafts show NAME --format json shows the form",
            ) from error
    return found
