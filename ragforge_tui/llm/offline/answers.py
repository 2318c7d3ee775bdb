"""Wording of the offline assistant's answers: lines quoted from tool results, with path and line.

Used by the assistant; pure functions over tool results. Nothing is invented: every fact in an answer
is a line of a result.
"""

from __future__ import annotations

import itertools
import math
import re
from typing import Any

import msgspec

from ragforge_tui.llm.offline.intents import Intent
from ragforge_tui.shared.code_words import is_test_file
from ragforge_tui.shared.model_help import WAYS_TO_A_MODEL

_HIT = re.compile(r"^(?P<path>[^\n]+?):(?P<line>\d+): ?(?P<text>.*)$")
_NUMBERED = re.compile(r"^\s*(\d+)\t(.*)$")
_RECALLED = re.compile(r"^\s*(?P<mark>\[t\d+\]) (?P<where>.*)$")
_DEFINITION = re.compile(
    r"^\s*(?:async\s+)?(?:def|class|function|func|fn|struct|interface|type|const|export|#+)\b", re.I
)
_ENTRY = re.compile(r"(?P<name>.+?)(?: \([\d.]+ \w+\))?(?P<ignored> \(ignored\))?")
_README = re.compile(r"readme(?:\.(?:md|rst|txt|markdown|adoc|org))?", re.I)
_MANIFESTS = ("pyproject.toml", "package.json", "Cargo.toml", "composer.json", "setup.cfg")
_DESCRIPTION = re.compile(r"""^\s*"?description"?\s*[=:]\s*["']?(.+?)["']?,?\s*$""")
_NO_PROSE = re.compile(r"#|[-=*_~]{3,}$|\[?!\[|<|\.\. |\|")
"""Beginnings of lines of a README that are no prose: headings, rules, badges, pictures, markup, tables."""
_MOST_TOLD = 1_200
"""Characters of a README's paragraph."""
_MOST_ENTRIES = 40
_MOST_FILES = 2
_TEST_SHARE = 1 / 3
"""How much of a file's score counts if it holds tests."""
_MOST_QUOTED = 60
_MOST_HITS = 6
_LONGEST = 160
"""Characters of a quoted line."""
_SENTENCE_END = re.compile(r"[.!?](?=\s)")

_INTRODUCTION = {
    False: "I am the offline assistant, not a language model: I look things up in the files and in this memory and "
    "quote them, but I do not reason about them.",
    True: "Je suis l'assistant hors ligne, pas un modèle de langage : je cherche dans les fichiers et dans la mémoire "
    "et je cite ce que je trouve, sans raisonner.",
}
_HELP = {
    False: "You can ask me to:\n"
    "- show a file: `what is in README.md`, `read src/app.py lines 10-40`\n"
    "- find something: `where is load_config`, `find files named *.py`\n"
    "- list a folder: `list the files in src`\n"
    '- change a file: `replace "a" with "b" in notes.txt`, `create todo.txt with …`\n'
    "- run a command: ``run `make test` ``\n"
    "- answer a question from the files: its words are searched for and the best lines quoted.\n\n"
    f"For a real conversation, {WAYS_TO_A_MODEL[0]}; {WAYS_TO_A_MODEL[1]}.",
    True: "Vous pouvez me demander :\n"
    "- de montrer un fichier : `montre README.md`, `lis src/app.py lignes 10 à 40`\n"
    "- de chercher : `où est load_config`, `trouve les fichiers *.py`\n"
    "- de lister un dossier : `liste les fichiers dans src`\n"
    '- de changer un fichier : `remplace "a" par "b" dans notes.txt`, `crée todo.txt avec …`\n'
    "- de lancer une commande : ``lance `make test` ``\n"
    "- de répondre à partir des fichiers : les mots de la question sont cherchés et les meilleures lignes citées.\n\n"
    "Pour une vraie conversation, choisissez un modèle avec /model.",
}


class FinishedCall(msgspec.Struct, frozen=True, kw_only=True):
    """Tool call of this turn and its result."""

    name: str
    arguments: dict[str, Any]
    text: str


class Hit(msgspec.Struct, frozen=True, kw_only=True):
    """Matching line of a file."""

    path: str
    line: int
    text: str


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """Material an answer is made of.

    Attributes:
        past: Earlier lines of this conversation about the terms, as (role, line).
        first: Whether it is the conversation's first answer.
    """

    intent: Intent
    done: list[FinishedCall]
    past: list[tuple[str, str]] = []
    first: bool = False


def is_listing(text: str) -> bool:
    """Return whether a result of read_file holds numbered lines, not an error."""
    return any(_NUMBERED.match(line) for line in text.splitlines()[:1])


def grep_hits(text: str) -> list[Hit]:
    """Return the matching lines in a result of grep_files."""
    matches = [_HIT.match(line) for line in text.splitlines()]
    return [Hit(path=m["path"], line=int(m["line"]), text=m["text"]) for m in matches if m]


def _stems(terms: list[str]) -> list[str]:
    """Return terms as they are found in lines: the search was for the stem of a plain word, so only that counts."""
    low = [term.lower() for term in terms]
    stems = (term[: max(4, len(term) - 2)] if term.isalpha() and len(term) > 5 else term for term in low)
    return list(dict.fromkeys(stems))


def best_hits(hits: list[Hit], terms: list[str]) -> list[Hit]:
    """Return the best line of each of the best files.

    A term counts more the fewer lines contain it, several terms together count more than each alone, a line that
    defines something counts double, and so does a file whose name contains a term. Tests count less than what they
    test, unless a term is about tests.
    """
    low = _stems(terms)
    lines = [hit.text.lower() for hit in hits]
    weight = {term: 1.0 / (2 + math.log2(1 + sum(term in line for line in lines))) for term in low}

    def score(matched: set[str]) -> float:
        return sum(weight[term] for term in matched) * len(matched)

    best: dict[str, tuple[float, Hit]] = {}
    seen: dict[str, set[str]] = {}
    for hit, line in zip(hits, lines, strict=True):
        matched = {term for term in low if term in line}
        seen.setdefault(hit.path, set()).update(matched)
        value = score(matched) * (2.0 if _DEFINITION.match(hit.text) else 1.0)
        if hit.path not in best or value > best[hit.path][0]:
            best[hit.path] = (value, hit)

    tests = _TEST_SHARE if not any(term.startswith("test") for term in low) else 1.0

    def rank(path: str) -> tuple[float, str]:
        named = 2.0 if any(term in path.lower() for term in low) else 1.0
        share = tests if is_test_file(path) else 1.0
        return -(score(seen[path]) + best[path][0]) * named * share, path

    return [best[path][1] for path in sorted(best, key=rank)[:_MOST_FILES]]


def introducing_file(listing: str) -> str:
    """Return the file of a folder that describes the project: its README, else its manifest; empty if it has none."""
    names = [name for name in _entries(listing) if not name.endswith("/")]
    readmes = sorted((name for name in names if _README.fullmatch(name)), key=len, reverse=True)
    return next(iter([*readmes, *(name for name in _MANIFESTS if name in names)]), "")


def _entries(listing: str) -> list[str]:
    """Return the names in a list of a folder, without the ignored ones."""
    matches = [_ENTRY.fullmatch(line) for line in listing.splitlines()]
    return [match["name"] for match in matches if match and not match["ignored"]]


def answer(evidence: Evidence) -> str:
    """Return the answer to a question from the evidence for it."""
    french = evidence.intent.french
    if evidence.intent.kind in ("greet", "help"):
        body = _HELP[french]
        return f"{_INTRODUCTION[french]}\n\n{body}"
    match evidence.intent.kind:
        case "lookup":
            body = _lookup(evidence)
        case "about":
            body = _about(evidence)
        case _:
            body = _outcome(evidence)
    return f"{_INTRODUCTION[french]}\n\n{body}" if evidence.first else body


def _about(evidence: Evidence) -> str:
    """Return the title and first paragraph of the file that introduces the project, and its top-level entries."""
    french, done = evidence.intent.french, evidence.done
    parts: list[str] = []
    for call in done:
        if call.name == "read_file" and is_listing(call.text):
            parts += _introduced(str(call.arguments.get("path", "")), call.text)
    if not parts:
        parts.append(
            "Aucun README ne dit ce que fait ce projet." if french else "No README says what this project does."
        )
    entries = [name for call in done if call.name == "glob_files" for name in _entries(call.text)]
    shown = [name for name in entries if not name.startswith(".")]
    if shown:
        listed = ", ".join(f"`{name}`" for name in shown[:_MOST_ENTRIES])
        more = len(shown) - _MOST_ENTRIES
        rest = (f" et {more} autres" if french else f" and {more} more") if more > 0 else ""
        parts.append(f"{'À la racine :' if french else 'At the top level:'} {listed}{rest}.")
    return "\n\n".join(parts)


def _introduced(path: str, text: str) -> list[str]:
    """Return the first paragraph of prose of a README, or the description in a manifest, with its lines."""
    numbered = [(int(m[1]), m[2].strip()) for line in text.splitlines() if (m := _NUMBERED.match(line))]
    if path in _MANIFESTS:
        found = [(number, m[1]) for number, line in numbered if (m := _DESCRIPTION.match(line))][:1]
    else:
        prose = itertools.dropwhile(lambda one: not one[1] or _NO_PROSE.match(one[1]), _without_underlines(numbered))
        found = list(itertools.takewhile(lambda one: one[1], prose))
    if not found:
        return []
    said = " ".join(line for _, line in found)
    said = said if len(said) <= _MOST_TOLD else f"{said[:_MOST_TOLD]}…"
    return [f"`{path}:{found[0][0]}-{found[-1][0]}`", f"> {said}"]


def _without_underlines(numbered: list[tuple[int, str]]) -> list[tuple[int, str]]:
    """Return the lines without titles that a line of signs below them marks as such."""
    titles = {at - 1 for at, (_, line) in enumerate(numbered) if re.fullmatch(r"(?:=|-|~|\*){3,}", line)}
    return [one for at, one in enumerate(numbered) if at not in titles]


def _outcome(evidence: Evidence) -> str:
    intent, done = evidence.intent, evidence.done
    if not done:
        return (
            "Je ne dispose pas de l'outil qu'il faudrait pour cela."
            if intent.french
            else "I do not have the tool this needs."
        )
    last = done[-1]
    if last.name == "read_file" and is_listing(last.text):
        return _file(intent, last)
    if last.name == "run_command":
        return f"`{intent.command}`\n\n{_fenced(last.text)}"
    if last.name in ("write_file", "edit_file"):
        return last.text
    if last.name == "glob_files" and intent.kind != "read":
        return _fenced(last.text)
    return "\n\n".join(dict.fromkeys(call.text for call in done))


def _file(intent: Intent, read: FinishedCall) -> str:
    """Return the lines of a file that match the question, else its beginning."""
    path = str(read.arguments.get("path", intent.path))
    lines = read.text.splitlines()
    matching = _matching(lines, intent.terms) if not intent.lines else []
    if matching:
        quoted = [f"`{path}:{number}` {text.strip()}" for number, text in matching[:12]]
        return "\n".join(f"- {line}" for line in quoted)
    numbered = [line for line in lines if _NUMBERED.match(line)]
    shown = numbered[:_MOST_QUOTED]
    numbers = [int(match[1]) for line in shown if (match := _NUMBERED.match(line))]
    more = len(numbered) - len(shown)
    note = ""
    if more > 0:
        note = f"\n\n… encore {more} lignes." if intent.french else f"\n\n… {more} more lines."
    return f"`{path}:{numbers[0]}-{numbers[-1]}`\n\n{_fenced(chr(10).join(shown))}{note}"


def _matching(lines: list[str], terms: list[str]) -> list[tuple[int, str]]:
    folded = [term.lower() for term in terms]
    numbered = [(int(m[1]), m[2]) for line in lines if (m := _NUMBERED.match(line))]
    return [(number, text) for number, text in numbered if any(term in text.lower() for term in folded)]


def _lookup(evidence: Evidence) -> str:
    intent = evidence.intent
    parts = [*_quotes(evidence), *_files(evidence), *_memory(evidence)]
    if parts:
        return "\n\n".join(parts)
    words = ", ".join(f"`{term}`" for term in intent.terms)
    if intent.french:
        missing = f"Je n'ai rien trouvé sur {words}." if words else "Je n'ai pas compris ce qu'il faut chercher."
    else:
        missing = f"I found nothing about {words}." if words else "I could not tell what to look for."
    return f"{missing}\n\n{_HELP[intent.french]}"


def _quotes(evidence: Evidence) -> list[str]:
    """Return the lines around the best matches, then further matches."""
    parts: list[str] = []
    read: set[str] = set()
    for call in evidence.done:
        if call.name == "read_file" and is_listing(call.text):
            path = str(call.arguments.get("path", ""))
            lines = {int(match[1]): line for line in call.text.splitlines() if (match := _NUMBERED.match(line))}
            read.add(path)
            parts.append(f"`{path}:{min(lines)}-{max(lines)}`\n\n{_fenced(chr(10).join(lines.values()))}")
    hits = [hit for call in evidence.done if call.name == "grep_files" for hit in grep_hits(call.text)]
    terms = _stems(evidence.intent.terms)
    others = sorted(
        (hit for hit in hits if hit.path not in read),
        key=lambda hit: (is_test_file(hit.path), -sum(term in hit.text.lower() for term in terms)),
    )
    if others:
        heading = "Aussi :" if evidence.intent.french else "Also:"
        listed = "\n".join(f"- `{hit.path}:{hit.line}` {_short(hit.text)}" for hit in others[:_MOST_HITS])
        parts.append(f"{heading}\n{listed}" if parts else listed)
    return parts


def _files(evidence: Evidence) -> list[str]:
    """Return the files whose names contain the first term of the question."""
    term = evidence.intent.terms[0].lower() if evidence.intent.terms else ""
    paths = [line.strip() for call in evidence.done if call.name == "glob_files" for line in call.text.splitlines()]
    named = [path for path in paths if term and term in path.lower() and " " not in path]
    if not named:
        return []
    heading = "Fichiers de ce nom :" if evidence.intent.french else "Files of that name:"
    return [heading + "\n" + "\n".join(f"- `{path}`" for path in named)]


def _memory(evidence: Evidence) -> list[str]:
    """Return earlier messages about the terms, from this conversation and from others."""
    french = evidence.intent.french
    parts: list[str] = []
    if evidence.past:
        who = {"user": "vous" if french else "you", "assistant": "moi" if french else "me"}
        lines = "\n".join(f"- {who[role]}: {_short(line)}" for role, line in evidence.past)
        parts.append(("Dit plus tôt ici :\n" if french else "From earlier in this conversation:\n") + lines)
    folded = [term.lower() for term in evidence.intent.terms]
    in_files = any(grep_hits(call.text) for call in evidence.done if call.name == "grep_files")
    recalled = [
        line.strip()
        for call in evidence.done
        if call.name == "search_history"
        for line in call.text.splitlines()
        # If the files hold it, an earlier quotation of it in this conversation adds nothing.
        if (m := _RECALLED.match(line)) and not (in_files and m["where"].startswith("this conversation"))
    ]
    # As in this conversation, one common word of a longer question means little.
    needed = min(2, len(folded)) or 1
    quoted = [f"- {_short(line)}" for line in recalled if sum(term in line.lower() for term in folded) >= needed]
    if quoted:
        heading = "Dans la mémoire :" if french else "From the memory:"
        parts.append(f"{heading}\n" + "\n".join(quoted[:_MOST_HITS]))
    return parts


def _short(text: str) -> str:
    """Return a line, a long one up to its last sentence or word that has room; a code span that is cut in two must not
    swallow the text after it."""
    text = text.strip()
    if len(text) > _LONGEST:
        head = text[:_LONGEST]
        sentences = [match.end() for match in _SENTENCE_END.finditer(head) if match.end() >= _LONGEST // 2]
        text = head[: sentences[-1]] if sentences else f"{head.rpartition(' ')[0] or head[:-1]}…"
    return text.replace("`", "") if text.count("`") % 2 or "``" in text else text


def _fenced(text: str) -> str:
    """Return a code block whose fence is longer than any in the text."""
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}\n{text}\n{fence}"
