"""Summaries without a model: what a user finds in them. Pure."""

from __future__ import annotations

import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragforge_tui.memory.findings.marked import mark_of
from ragforge_tui.memory.keyterms import key_terms, same_forms
from ragforge_tui.memory.language import STOP_WORDS, language_of
from ragforge_tui.memory.prose import answer_prose, compress, cut, cut_before_end, sentences, strip_markdown, user_prose
from ragforge_tui.memory.summaries.draft import Draft
from ragforge_tui.memory.summaries.offline.extract import extract
from ragforge_tui.memory.summaries.offline.levels import extract_conversation, extract_over
from ragforge_tui.memory.summaries.offline.phrases import phrases
from ragforge_tui.shared.records import REFUSED, FileAccess, Finding, Summary, ToolResult, Turn, now
from ragforge_tui.shared.tool_calls import tool_info
from tests.support.records import call_of, message
from tests.support.turns import turn_of


def of(*exchanges: tuple[str, str]) -> Draft:
    return extract([turn_of("c", index, *exchange) for index, exchange in enumerate(exchanges, 1)])


def acted(index: int, asked: str, answer: str, *calls: tuple[str, str, str, str]) -> Turn:
    """A turn with calls: (tool, arguments, reason, result as JSON)."""
    turn = turn_of("c", index, asked)
    reply = message("c", role="assistant", turn_index=index, position=1)
    for tool, arguments, reason, gave in calls:
        call = call_of(reply.uuid, tool_name=tool, arguments=arguments, reasoning=reason)
        failed = '"failed"' in gave
        call.result = ToolResult(
            uuid=call.uuid,
            tool_call_id=call.uuid,
            success=not failed,
            result=gave,
            error="It failed." if failed else None,
            timestamp=now(),
        )
        if tool in ("read_file", "edit_file"):
            call.files = [FileAccess(path="src/app.py", access="write" if tool == "edit_file" else "read")]
        reply.tool_calls.append(call)
    last = message("c", role="assistant", turn_index=index, position=2, content=answer)
    return Turn(turn_index=index, messages=[*turn.messages, reply, last])


def test_questions_and_answers_are_given_in_order() -> None:
    draft = of(
        ("Hi there! Where are passwords checked?", "Sure! They are checked in auth.py. It uses bcrypt."),
        ("And the tests?", "The tests stand in tests/test_auth.py. Shall I run them?"),
    )
    assert draft.conversation_summary == (
        "The user asked: “Where are passwords checked?”; the answer: They are checked in auth.py. It uses bcrypt. "
        "Then: “And the tests?”; the answer: The tests stand in tests/test_auth.py."
    )
    assert [(f.text, f.turns) for f in draft.key_findings] == [
        ("They are checked in auth.py.", [1]),
        ("It uses bcrypt.", [1]),
        ("The tests stand in tests/test_auth.py.", [2]),
    ]
    assert draft.files_mentioned == ["auth.py", "tests/test_auth.py"]
    assert draft.made_by == "extractive"


def test_french_is_reported_in_french() -> None:
    draft = of(
        (
            "Pourquoi les essais échouent-ils ?",
            "Les essais échouent parce que le fichier config.yaml manque. Il faut lancer `make config` avant.",
        ),
        ("Corrige-le.", "J'ai ajouté le fichier config.yaml et les 12 essais passent."),
    )
    assert draft.conversation_summary == (
        "L'utilisateur a demandé : « Pourquoi les essais échouent-ils ? » ; la réponse : Les essais échouent parce que "
        "le fichier config.yaml manque. Il faut lancer `make config` avant. Puis : « Corrige-le. » ; la réponse : J'ai "
        "ajouté le fichier config.yaml et les 12 essais passent."
    )


TALKS = {
    "de": ("Warum scheitern die Tests von gestern?", "Die Tests scheitern, weil die Datei config.yaml nicht da ist."),
    "en": ("Why do the tests of yesterday fail?", "The tests fail because the file config.yaml is not there."),
    "es": ("¿Por qué fallan las pruebas de ayer?", "Las pruebas fallan porque no está el archivo config.yaml."),
    "fr": ("Pourquoi les essais échouent-ils ?", "Les essais échouent parce que le fichier config.yaml n'est pas là."),
    "it": ("Perché non passano i test di ieri?", "I test non passano perché il file config.yaml non è nella cartella."),
    "nl": ("Waarom falen de tests van gisteren?", "De tests falen omdat het bestand config.yaml er niet is."),
    "pt": ("Por que falham os testes de ontem?", "Os testes falham porque o ficheiro config.yaml não está na pasta."),
    "ru": ("Почему вчера не прошли тесты?", "Тесты не прошли, потому что там нет файла config.yaml."),
}


@pytest.mark.parametrize("language", sorted(STOP_WORDS))
def test_each_language_is_reported_in_its_own_words(language: str) -> None:
    asked, answer = TALKS[language]
    said = phrases(language)
    call = ("read_file", '{"path": "src/app.py"}', "", '{"text": "x = 1"}')
    draft = extract([acted(1, asked, answer, call)], language=language_of(f"{asked}\n{answer}"))
    assert draft.conversation_summary == said.asked.format(said.quote.format(asked)) + said.answer.format(answer)
    assert said.verb(tool_info("read_file")).format("`src/app.py`").casefold() in draft.actions_summary.casefold()
    words = draft.conversation_summary.replace(asked, "").replace(answer, "") + draft.actions_summary
    english = STOP_WORDS["en"] - STOP_WORDS[language]
    assert language == "en" or not english.intersection(re.findall(r"[a-z]{3,}", words.lower()))


def test_statements_of_the_user_about_themselves_are_attributed_to_them() -> None:
    draft = of(
        ("I adopted a dog called Rex yesterday. He is a beagle.", "Congratulations! You must be so happy!"),
        ("My sister moved to Lyon in 2021.", "How nice for you!"),
    )
    texts = [finding.text for finding in draft.key_findings]
    assert "The user: “I adopted a dog called Rex yesterday.”" in texts
    assert "The user: “My sister moved to Lyon in 2021.”" in texts
    assert draft.conversation_summary.startswith("The user said: “I adopted a dog called Rex yesterday.”")


def test_actions_are_given_with_their_reasons_and_outcomes() -> None:
    lines = "\\n".join(f"     {n}\\tx" for n in range(3, 9))
    turns = [
        acted(
            1,
            "Fix the greeting",
            "The greeting says hello again.",
            ("read_file", '{"path": "src/app.py"}', "To find the greeting.", f'{{"text": "{lines}"}}'),
            (
                "grep_files",
                '{"pattern": "greet"}',
                "To find the greeting.",
                '{"text": "a.py:1: x\\nb.py:2: y\\nb.py:3: z"}',
            ),
            ("edit_file", '{"path": "src/app.py"}', "", '{"text": "Wrote src/app.py (+2 -1 lines)."}'),
            (
                "run_command",
                '{"command": "make test"}',
                "",
                '{"text": "..\\n3 passed in 1s\\n[Exit status 0.]", "exit_status": 0}',
            ),
            (
                "run_command",
                '{"command": "make lint"}',
                "",
                '{"text": "E501 too long\\n[Exit status 1.]", "exit_status": 1}',
            ),
            ("weather", '{"query": "Lyon"}', "", '{"text": "failed", "failed": 1}'),
        )
    ]
    assert extract(turns).actions_summary == (
        "Read `src/app.py` (lines 3–8), searched for `greet` (3 matches in 2 files): To find the greeting. Edited "
        "`src/app.py` (+2 −1), ran `make test` (3 passed in 1s), ran `make lint` (exit status 1: E501 too long), used "
        "weather(Lyon) (failed: It failed)."
    )
    many = [
        acted(
            n,
            f"read it {n}",
            "",
            *(("read_file", '{"path": "src/app.py"}', f"Reason number {n} {m}", '{"text": ""}') for m in range(20)),
        )
        for n in range(1, 6)
    ]
    told = extract(many).actions_summary
    assert len(told) <= 500
    assert "more." in told or "times" in told
    assert extract(many).conversation_summary


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        ("You asked for it.", "Wrote `hello.py` (+2 −0)."),
        ("The user requested `hello.py`.", "Wrote `hello.py` (+2 −0)."),
        ("A first script to try the build.", "Wrote `hello.py` (+2 −0): A first script to try the build."),
    ],
)
def test_a_reason_follows_the_action_if_it_tells_more(reason: str, told: str) -> None:
    call = ("write_file", '{"path": "hello.py"}', reason, '{"text": "Wrote hello.py (+2 -0 lines)."}')
    made = extract([acted(1, "Write a script", "It is written.", call)])
    assert made.actions_summary == told


def test_code_shows_of_itself_what_it_is() -> None:
    block = (
        '     7\tdef mask(text):\n     8\t    """Replace what looks like a key. And more."""\n     9\t    return text'
    )
    text = (
        "I am the offline assistant, not a language model: I look.\n\n`src/text.py:7-9`\n\n"
        f"```\n{block}\n```\n\nAlso:\n- `x.py:3` import os\n- `y.py:4` import re"
    )
    assert answer_prose(text) == "`src/text.py:7-9` `mask`: Replace what looks like a key."
    silent = "`a.py:1-1`\n\n```\n     1\tx = 1\n```\n\n" + f"`src/text.py:7-9`\n\n```\n{block}\n```"
    assert answer_prose(silent) == "`src/text.py:7-9` `mask`: Replace what looks like a key."
    assert answer_prose("```\na.py\nb.py\nc.py\nd.py\n```") == "a.py, b.py, c.py, …"
    assert answer_prose("`git log`\n\n```\nabc Fix\n[Exit status 0.]\n```") == "`git log`: abc Fix"
    said = "Here is how the new version of it looks now:\n```py\nx = 1\n```\nIt is **faster** by half."
    assert answer_prose(said).endswith("\nIt is faster by half.")
    assert answer_prose("- `x.py:3` import os") == "`x.py:3` import os"


def test_markup_is_taken_off() -> None:
    text = (
        "# Title\n\n* one **bold** [link](http://x)\n> said\n\n| a | b |\n|---|---|\n\n---\n"
        "~~~\ncode\n~~~\n1. `__init__.py` and **strong words**"
    )
    assert strip_markdown(text) == "Title\none bold link\nsaid\n`__init__.py` and strong words"
    assert strip_markdown("[![badge](b.svg)](ci) and [set](https://en.org/Set_(maths))") == "[badge](ci) and set"
    assert strip_markdown("## In C ##\n2 ** 3 and **bold** ~~gone~~") == "In C\n2 ** 3 and bold gone"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ("See e.g. the file. Dr. Who is in.", ["See e.g. the file.", "Dr. Who is in."]),
        ("Version 2.5 is in a.py. Yes.", ["Version 2.5 is in a.py.", "Yes."]),
        ("認証です。次です。", ["認証です。", "次です。"]),
        ("", []),
    ],
)
def test_sentences(text: str, found: list[str]) -> None:
    assert sentences(text) == found


def test_cutting_ends_at_a_sentence_or_a_word() -> None:
    assert cut("One sentence here. Another one there.", 25) == "One sentence here."
    assert cut("A long sentence without any end in sight at all", 20) == "A long sentence…"
    assert compress("Well, I went there, although it was late and cold", 40) == "I went there, although it was late…"
    assert compress("He said “it is very late and I am tired” to us all", 30).count("”") == 1


@given(st.text(max_size=400), st.integers(4, 120))
def test_cuts_keep_their_limit(text: str, limit: int) -> None:
    assert len(cut(text, limit)) <= limit
    assert len(compress(text, limit)) <= limit


@given(st.lists(st.tuples(st.text(max_size=200), st.text(max_size=600)), min_size=1, max_size=6))
def test_whatever_is_reported_the_limits_hold(exchanges: list[tuple[str, str]]) -> None:
    draft = of(*exchanges)
    assert 0 < len(draft.conversation_summary) <= 500
    assert len(draft.key_findings) <= 5
    assert all(0 < len(f.text) <= 300 and set(f.turns) <= set(range(1, 7)) for f in draft.key_findings)
    assert len(draft.topics) <= 4
    assert draft == of(*exchanges)


def part(start: int, end: int, text: str, *findings: str, topics: tuple[str, ...] = ()) -> Summary:
    return Summary(
        uuid=f"s{start}",
        conversation_id="c",
        level=1,
        conversation_summary=text,
        actions_summary=f"Read file{start}.py. Edited `app{start}.py` (+1 -1).",
        key_findings=[Finding(text=finding, turns=[start]) for finding in findings],
        files_mentioned=[f"app{start}.py", "README.md"],
        topics=list(topics),
        start_turn_index=start,
        end_turn_index=end,
        turn_count=end - start + 1,
        created_at=now(),
    )


def parts() -> list[Summary]:
    texts = [
        ("Retries wait 3 seconds.", "The limit is 5."),
        ("Tokens are masked in text.py.",),
        ("Tests take 2 minutes.",),
    ]
    return [
        part(3 * n + 1, 3 * n + 3, f"Part {n}.", *found, topics=("Retries", f"Topic {n}"))
        for n, found in enumerate(texts)
    ]


def test_summaries_are_joined_in_the_order_of_the_turns() -> None:
    draft = extract_over(parts())
    assert draft.conversation_summary == (
        "Turns 1–3: Retries wait 3 seconds. The limit is 5. Turns 4–6: Tokens are masked in text.py. Turns 7–9: Tests "
        "take 2 minutes."
    )
    assert [f.turns for f in draft.key_findings] == [[1], [1], [4], [7]]
    assert draft.topics[0].name == "Retries"
    assert draft.files_mentioned[0] == "README.md"
    assert "Edited `app1.py`" in draft.actions_summary


def test_a_conversation_in_three_sentences() -> None:
    text = extract_conversation(
        parts(),
        [turn_of("c", 10, "And the docs?", "The docs are in README.md.")],
        goal="Why do retries wait? It is slow.",
    )
    assert text.startswith("About Retries, Topic ")
    assert "it began with “Why do retries wait?” Done: " in text
    assert "Found: " in text
    assert len(text) <= 500
    assert extract_conversation([], []) == ""


def test_topics_are_nouns_that_return() -> None:
    texts = ["The retry policy waits. The retry policy is in client.py.", "Is the retry policy tested? Thanks, Ada!"]
    assert key_terms(texts, "en")[0] == "retry policy"
    assert not {"Ada", "client.py", "Thanks"} & set(key_terms(texts, "en"))
    links = same_forms(["Retry", "retries", "Retries", "Café", "cafés", "Cafe"])
    assert [(link.a, link.b, link.confidence) for link in links] == [
        ("Retry", "retries", 1.0),
        ("Retry", "Retries", 1.0),
        ("Café", "cafés", 1.0),
    ]


def test_topics_are_neither_verbs_nor_vague_words() -> None:
    english = ["The tax office insists on paper.", "Paper is slow; the office is closed, so wait for an answer."]
    assert set(key_terms(english, "en")) == {"office", "paper"}
    german = ["Die Saison geht bis Oktober.", "Der Hafenmeister verlängert die Saison, schreib das in den Code."]
    assert set(key_terms(german, "de")) == {"Saison", "Hafenmeister"}
    french = ["Le four de Lucie chauffe trop.", "La recette n'arrive qu'en mai, le four aussi."]
    assert set(key_terms(french, "fr")) == {"four", "recette", "Lucie"}
    assert key_terms(["The login page fails, complete_ and _files too.", "Fix the login page."], "en") == ["login page"]


PASTED = """I get this when I start it:

fail: Microsoft.AspNetCore.Diagnostics
      at CatalogService.Repositories.Find() in C:\\src\\Find.cs:line 12
// neither of these works
builder.Host.UseNLog();
var database = client.GetDatabase(name);
if (database is null) {
    throw new InvalidOperationException("MONGODB_NAME is required");
}
Is the connection string wrong?"""


def test_pasted_code_is_not_what_the_user_says() -> None:
    prose = user_prose(PASTED)
    assert prose.splitlines()[0] == "I get this when I start it:"
    assert prose.splitlines()[-1] == "Is the connection string wrong?"
    assert not [
        word for word in ("UseNLog", "InvalidOperation", "neither", "GetDatabase", "Repositories") if word in prose
    ]
    assert user_prose("x = 1;\ny = 2;") == "x = 1;\ny = 2;"  # nothing else was said


def test_completed_actions_are_preferred_to_announced_ones() -> None:
    draft = of(
        (
            "Add a retry to the client.",
            "I'll look at the client first. Now I need to change these lines:\n\n"
            "The client retries three times now, after 1, 2 and 4 seconds.",
        )
    )
    assert "the answer: The client retries three times now" in draft.conversation_summary
    assert not [finding for finding in draft.key_findings if finding.text.endswith(":") or "I'll" in finding.text]


def test_a_topic_is_described_by_the_statement_that_tells_most_of_it() -> None:
    draft = of(
        ("What is the retry policy?", "The retry policy waits 4 seconds before it asks the server again."),
        ("Is the retry policy tested?", "Yes, in test_client.py."),
    )
    described = {topic.name.casefold(): topic.description for topic in draft.topics}
    assert described["retry policy"] == "The retry policy waits 4 seconds before it asks the server again."
    assert of(("What about leases?", "")).topics[0].description == "What about leases?"


DECIDED = (
    ("Where are leases checked?", "`src/lease.py:7-9` `alive`: Whether the process that writes a message still lives."),
    (
        "My plan is to raise the grace, because laptops that wake up lose their turns. I decided on 15 seconds.",
        "`README.md:10-12` Leases of streaming messages are renewed each second by `renew_lease` in `writer_loop`.",
    ),
    (
        "Where is `renew_lease` called?",
        "`src/loop.py:20-31` `writer_loop`: Renews the lease of each message it writes.",
    ),
)


def over(*exchanges: tuple[str, str], start: int = 1) -> Summary:
    """The extracted summary of exchanges, as it is stored."""
    draft = of(*exchanges)
    made = part(start, start + len(exchanges) - 1, draft.conversation_summary)
    made.actions_summary, made.key_findings = draft.actions_summary, draft.key_findings
    return made


def test_the_users_decisions_come_before_unrequested_ones() -> None:
    draft = of(*DECIDED)
    texts = [finding.text for finding in draft.key_findings]
    assert "The user: “I decided on 15 seconds.”" in texts
    assert not any(text.startswith("`README.md") for text in texts[:3])
    assert "README" not in draft.conversation_summary


def test_higher_levels_tell_what_the_user_asked_and_decided() -> None:
    children = [over(*DECIDED), over(("Which tests fail?", "The tests of the journal fail."), start=4)]
    draft = extract_over(children)
    first, _, second = draft.conversation_summary.partition(" Turn 4: ")
    assert first.startswith("Turns 1–3: “Where are leases checked?”, “My plan is to raise the grace")
    assert "“Where is `renew_lease` called?”." in first
    assert second.startswith("“Which tests fail?”.")
    assert any("I decided on 15 seconds." in finding.text for finding in draft.key_findings) or (
        "I decided on 15 seconds." in first
    )
    again = extract_over([*children, over(("And now?", "All tests pass."), start=5)])
    assert "“My plan is to raise the grace" in again.conversation_summary


@pytest.mark.parametrize("label", ["The user: {}", "{}"])
def test_a_finding_that_quotes_the_user_comes_first(label: str) -> None:
    decision = label.format("“I decided on 15 seconds.”")
    stored = part(1, 3, "Leases are renewed each second.", "`lease.py` renews `LEASE_GRACE` in 3 places.", decision)
    told = extract_conversation([stored], [], language="en")
    assert told.endswith(f"Found: {decision}") == (label != "{}")
    assert decision in [
        finding.text for finding in extract_over([stored, part(4, 6, "", "Tests take long.")]).key_findings
    ]


@pytest.mark.parametrize("language", sorted(STOP_WORDS))
def test_labels_of_all_languages_are_recognised(language: str) -> None:
    said = phrases(language)
    assert said.without_label(said.user.format("“No.”")) == ("“No.”", True)
    assert said.without_label("No.") == ("No.", False)


def test_looks_are_only_counted_where_not_all_can_be_given() -> None:
    looks = [("grep_files", f'{{"pattern": "{c * 40}"}}', f"To find {c * 30}", '{"text": ""}') for c in "abcde"]
    turn = acted(1, "Where is it?", "It is in app.py.", *looks, ("read_file", '{"path": "src/app.py"}', "", "{}"))
    assert extract([turn]).actions_summary == "Read `src/app.py`; and 5 more."


def test_a_greeting_is_no_beginning() -> None:
    goal = "Hello! The parser fails."
    told = extract_conversation([], [turn_of("c", 1, goal, "It does.")], goal=goal)
    assert "The parser fails." in told
    assert "Hello" not in told


KINDS = {
    "de": ("Ich habe mich entschieden: 15 Sekunden.", "Ich bevorzuge kurze Antworten.", "Die Tests sind noch offen."),
    "en": ("I decided on 15 seconds.", "I prefer short answers.", "The tests are still to do."),
    "es": ("He decidido usar 15 segundos.", "Prefiero respuestas cortas.", "Queda pendiente la documentación."),
    "fr": ("J'ai décidé de 15 secondes.", "Je préfère des réponses courtes.", "La documentation reste à faire."),
    "it": ("Ho deciso per 15 secondi.", "Preferisco risposte brevi.", "La documentazione resta da fare."),
    "nl": ("Ik heb besloten: 15 seconden.", "Altijd kort antwoorden.", "De documentatie is nog te doen."),
    "pt": ("Decidi usar 15 segundos.", "Prefiro respostas curtas.", "Ainda falta a documentação."),
    "ru": ("Я решил: 15 секунд.", "Всегда отвечай коротко.", "Осталось сделать документацию."),
}


@pytest.mark.parametrize("language", sorted(STOP_WORDS))
def test_the_kinds_of_findings_are_told_by_their_words(language: str) -> None:
    decision, preference, still_open = KINDS[language]
    assert mark_of(decision, by_user=True) == "decision"
    assert mark_of(preference, by_user=True) == "preference"
    assert mark_of(still_open, by_user=False) == "open"
    assert {mark_of(text, by_user=False) for text in (decision, preference)} == {""}
    assert mark_of(still_open.replace(".", "?"), by_user=True) == ""
    assert mark_of("I have never been there, but I always wanted to go.", by_user=True) == ""


def test_findings_keep_their_kinds_on_all_levels() -> None:
    draft = of(
        ("I decided on 15 seconds for the lease.", "The lease is 15 seconds now. The README is still to do."),
        ("Where are leases checked?", "They are checked in `lease.py`."),
    )
    kinds = {finding.text: finding.kind for finding in draft.key_findings}
    assert kinds["The user: “I decided on 15 seconds for the lease.”"] == "decision"
    assert kinds["The README is still to do."] == "open"
    child = part(1, 2, draft.conversation_summary)
    child.key_findings = [*draft.key_findings, Finding(text="Ports are 80 and 81.", turns=[2], kind="fact")]
    found = extract_over([child, part(3, 4, "Part two.", "Tests take long.")]).key_findings
    assert {"decision", "open"} <= {finding.kind for finding in found}
    assert extract_conversation([child], []).endswith("Open: The README is still to do.")


def test_the_title_is_made_of_the_terms() -> None:
    draft = of(
        ("Where is the retry policy?", "The retry policy is in `client.py`."), ("Is the retry policy tested?", "")
    )
    assert draft.title.startswith("retry policy")
    assert of(("Hm.", "Ok.")).title


def test_formulas_are_neither_key_words_nor_sentences() -> None:
    integral = r"$$\int_0^1 \frac{\sin_k x}{x_0}\,dx$$"
    answer = (
        "The integral converges because the integrand is bounded.\n\n$$\n\\int_0^1 f_0(x)\\,dx\n= \\int_0^1 g_0\n$$\n\n"
        r"The bound is $\sup_k f_0! = 1! (k-1)!$ on the interval. \[\int_0^1 f_0 = \int_0^1 g_0\]"
        "\n\nThe interval is closed and the bound is sharp."
    )
    asked = f"Does this integral converge?\n\n{integral}\n\nThe integral comes from a lecture."
    draft = of((asked, answer), ("And the bound of the integral?", f"The bound is one.\n\n{integral}"))
    assert draft.conversation_summary == (
        "The user asked: “Does this integral converge?”; the answer: The integral converges because the integrand is "
        "bounded. The bound is $\\sup_k f_0! = 1! (k-1)!$ on the interval. The interval is closed and the "
        "bound is sharp. Then: “The bound of the integral?”; the "
        "answer: The bound is one."
    )
    assert not any("int_0" in finding.text for finding in draft.key_findings)
    assert {topic.name for topic in draft.topics} <= {"integral", "bound", "interval", "lecture", "converge"}
    assert "int" not in draft.title.replace("integral", "").replace("interval", "")
    assert key_terms([r"the parser of $p_x$ and $$p_x$$ fails"] * 2) == ["parser"]
    only = of((integral, integral))
    assert only.conversation_summary.startswith("The user said: “$$") and only.topics == []


def test_what_the_offline_assistant_recalls_is_no_finding_of_this_conversation() -> None:
    recalled = "From the memory:\n- [t1] “Sums”, conversation be3081de, 2026-11-28: > what does add do?"
    draft = of(("Where is add?", f"`calc.py:1-3`\n\n```\n     1\tdef add(a, b):\n```\n\n{recalled}"))
    assert "be3081de" not in f"{draft.conversation_summary} {draft.key_findings}"
    assert "`calc.py:1-3` `add`" in draft.conversation_summary


def test_a_cut_breaks_no_formula() -> None:
    text = r"The value of the bound is given by $a_1 + a_2, b_1 + b_2 + c_1 + c_2 + d_1$ here"
    assert cut(text, 50) == compress(text, 50) == "The value of the bound is given by…"
    assert cut(text, 62) == compress(text, 62) == "The value of the bound is given by…"


def test_actions_and_refusals_of_the_user_are_attributed_to_them() -> None:
    turn = acted(
        1, "!make clean", "", ("run_command", '{"command": "make clean"}', "", '{"text": "ok", "exit_status": 0}')
    )
    turn.messages[0].doing = "run_command"
    turn.messages[1].role = "system"
    refused = acted(2, "Clean up.", "Not done.", ("run_command", '{"command": "rm -r x"}', "", '{"text": "failed"}'))
    refused.messages[1].tool_calls[0].result.error = REFUSED  # type: ignore[union-attr]
    draft = extract([turn, refused])
    assert draft.actions_summary == "Ran `make clean` (ok) (by the user), ran `rm -r x` (refused by the user)."
    assert "make clean" not in draft.conversation_summary


def test_a_pasted_log_is_not_what_the_user_says() -> None:
    log = "\n".join(f"10:00:{n:02} INFO worker fetched page {n}" for n in range(40))
    draft = of((f"Our crawler stops, here is the log:\n{log}\nWhy is that?", "Page 39 never answers."))
    assert "INFO" not in f"{draft}"
    assert "Our crawler stops, here is the log:" in draft.conversation_summary


def test_a_text_is_cut_before_its_last_sentence() -> None:
    text = f"{'One of many sentences. ' * 10}The tests are still to do."
    assert cut_before_end(text, 100) == f"{'One of many sentences. ' * 3}The tests are still to do."
    assert cut_before_end("Short.", 100) == "Short."
    assert cut_before_end("word " * 100, 100) == cut("word " * 100, 100)
    assert len(cut_before_end(f"Start. {'word ' * 100}", 100)) <= 100
    assert cut_before_end("", 100) == ""


def test_offline_levels_keep_every_decision_of_their_range() -> None:
    children = []
    for n in range(1, 10):
        draft = of(
            (f"How does part {n} of the queue work?", f"Part {n} reads file{n}.py and holds {n} locks."),
            (f"Decision: queue {n} waits {n * 10} seconds before it retries.", "Noted."),
        )
        assert [one.text for one in draft.key_findings if one.kind == "decision"]
        children.append(
            Summary(
                uuid=f"s{n}",
                conversation_id="c",
                level=1,
                conversation_summary=draft.conversation_summary,
                key_findings=draft.key_findings,
                start_turn_index=2 * n - 1,
                end_turn_index=2 * n,
                turn_count=2,
                made_by="extractive",
                created_at=now(),
            )
        )
    second = extract_over(children)
    decided = [one.text for one in second.key_findings if one.kind == "decision"]
    assert [f"queue {n} waits {n * 10} seconds" in text for n, text in enumerate(decided, 1)] == [True] * 9
    third = extract_over(
        [msgspec.structs.replace(children[0], level=2, key_findings=second.key_findings, end_turn_index=18)]
    )
    assert [one.text for one in third.key_findings if one.kind == "decision"] == decided
