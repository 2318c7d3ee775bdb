"""Drafts are whole personas, and what a model answers is taken only when it holds one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragforge_tui.personas import persona_of
from ragforge_tui.personas.drafts import brief_of, improved, improvement_request, template
from ragforge_tui.shared.errors import RagforgeError
from ragforge_tui.shared.persona_records import PersonaBrief


def test_a_brief_in_one_line() -> None:
    assert brief_of("Vega | blue | français | Reviews | pipes") == PersonaBrief(
        name="Vega", color="blue", language="français", purpose="Reviews | pipes"
    )
    assert brief_of("Vega") == PersonaBrief(name="Vega")
    with pytest.raises(RagforgeError):
        brief_of(" | blue")


def test_the_template_shows_everything_that_was_written() -> None:
    brief = PersonaBrief(
        name="Vega",
        purpose="Reviews SQL",
        tone="dry",
        language="Deutsch",
        color="bleu",
        glyph="☾ moon",
        rules="never guess; - show the plan",
        examples="An index would help; EXPLAIN first.",
    )
    text = template(brief, "Ada")
    persona = persona_of(text.encode(), "other", "own", "")
    assert persona.diagnostics == ()
    assert (persona.name, persona.fields.color, persona.fields.glyph) == ("Vega", "blue", "☾")
    assert (persona.description, persona.fields.language) == ("Reviews SQL", "Deutsch")
    assert persona.fields.others["sample"] == "An index would help"
    for said in ("☾ dry", "- never guess\n", "- show the plan\n", "« An index would help »", "{USER_NAME}"):
        assert said in text


@given(st.builds(PersonaBrief, name=st.just("Vega"), purpose=st.text(), tone=st.text(), glyph=st.text()))
def test_the_template_keeps_its_name_whatever_is_reported(brief: PersonaBrief) -> None:
    text = template(brief, '"><x name="Evil')
    assert persona_of(text.encode("utf-8", "surrogatepass"), "other", "own", "").name == "Vega"


def test_the_document_is_found_in_the_answer_and_keeps_the_name() -> None:
    draft = template(PersonaBrief(name="Vega"), "Ada")
    answer = "Here:\n```xml\n<luciform name='Other' id='x'>deep</luciform>\n```\nEnjoy"
    assert improved(answer, draft) == "<luciform name=\"Vega\" id='x'>deep</luciform>\n"
    assert improved("<luciform id='x'>deep</luciform>", draft) == "<luciform name=\"Vega\" id='x'>deep</luciform>\n"
    for none in ("Sorry, no.", "</luciform> <luciform>", "<luciformer></luciform>"):
        with pytest.raises(RagforgeError, match="did not reply"):
            improved(none, draft)


def test_the_request_holds_the_draft() -> None:
    system, user = improvement_request("<luciform/>")
    assert (system["role"], user["role"]) == ("system", "user")
    assert "<luciform/>" in user["content"]
