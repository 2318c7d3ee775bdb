"""Intents of messages to the offline assistant, read from the words alone, in English and French.

Patterns, not understanding: the first match wins, and a message that matches none is a question whose words are
looked up. Used by the assistant only.
"""

from __future__ import annotations

import re
from typing import Literal

import msgspec

Kind = Literal["greet", "help", "about", "run", "replace", "create", "read", "list", "find_file", "lookup"]


class Intent(msgspec.Struct, kw_only=True, frozen=True):
    """Request of the user and its object.

    Attributes:
        terms: Words to look up, the most specific first.
        lines: First and last line requested.
        french: Whether to answer in French.
    """

    kind: Kind
    path: str = ""
    terms: list[str] = []
    command: str = ""
    old: str = ""
    new: str = ""
    lines: tuple[int, int] | None = None
    french: bool = False


_STOP_WORDS_TEXT = (
    "handle handles handled happen happens implement implemented implements default "
    "a about after all also am an and any anything are as at be because been but by can code could describe did "
    "do does done each else explain file files find folder for from function functions get give go had has have "
    "he her here him his how i if in into is it its just know let like look make many may me mean means might "
    "more most much must my need no not now of on one only or other our out over please project say search see "
    "she should show so some something tell than that the their them then there these they thing this those "
    "through to too under up us use used uses using very want was we were what when where which while who whose "
    "why will with work works would you your line lines text word words class module method au aussi autre aux "
    "avec avez avons c ce ces cette chez comment comme cherche code contenu d dans de des dis dit donc dont du "
    "elle elles en est et etc eu explique faire fait fichier fichiers font il ils j je l la le les leur leurs lui "
    "m ma mais me mes moi mon montre n ne nos notre nous on ont ou où par parle pas plus pour pourquoi pourrais "
    "peux peut projet qu quand que quel quelle quelles quels qui quoi recherche s sa sans se ses si son sont sur "
    "t ta te tes toi ton tous tout toute toutes trouve trouver tu un une utilise vos votre vous y à ça été être "
)
_STOP_WORDS = frozenset(_STOP_WORDS_TEXT.split())
_FRENCH_TEXT = (
    "au aux avec bonjour salut ce cette dans de des du elle est et il je la le les lis montre nous où par pas "
    "pour quel quelle quels quelles qui quoi que sur tu un une vous crée créer cherche trouve liste affiche lance "
    "exécute remplace ouvre aide comment pourquoi merci fichier fichiers dossier "
)
_FRENCH = frozenset(_FRENCH_TEXT.split())
_WORD = re.compile(r"[^\W_][\w.\-/]*|_\w+")
_QUOTED = re.compile(r"`([^`\n]+)`|\"([^\"\n]+)\"|«\s*([^»\n]+?)\s*»|“([^”\n]+)”")
_NAMED = r"README|LICENSE|LICENCE|Makefile|Dockerfile|CHANGELOG|NOTICE"
_PATH = re.compile(
    rf"(?<![\w`])[@`\"'«]?\s?("
    rf"(?:[\w.\-]{{1,255}}/){{0,40}}(?:[\w.\-]{{0,255}}[\w\-]\.[A-Za-z][\w]{{0,11}}|{_NAMED})|\.[a-z][\w.\-]+)\b"
)
_Q = r"[`\"'“”«»]\s?"

_GREETING = re.compile(r"(?:hi|hello|hey|good (?:morning|evening)|bonjour|salut|bonsoir|coucou|thanks?|merci)\b", re.I)
_MOST_ABOUT_WORDS = 9
_HELP = re.compile(
    r"(?:/?help|aide)[\s?!.]*$|what can you do|who are you|what are you"
    r"|que (?:peux|sais)[- ]tu(?: faire)?\s*[?!.]*$|qui es[- ]tu",
    re.I,
)
_SUBJECT = (
    r"(?:this|the|our|my|ce|cette|le|la)\s+"
    r"(?:project|repo(?:sitory)?|program|app(?:lication)?|code(?:base)?|projet|dépôt|programme)"
)
_ABOUT = re.compile(
    rf"(?:what|que|qu'est-ce que)\b.{{0,12}}\b(?:does|do|is|fait|est)\s+{_SUBJECT}\b"
    rf"|(?:describe|explain|summari[sz]e|introduce|present|décri[st]|explique|résume|présente)[rz]?(?:-moi)?\s+{_SUBJECT}\b"
    rf"|(?:tell me|what do you know)\s+(?:something\s+)?about\s+{_SUBJECT}\b"
    rf"|(?:c'est quoi|à quoi sert|de quoi parle)\s+{_SUBJECT}\b",
    re.I,
)
_RUN = re.compile(r"\b(?:run|execute|launch|lance[rz]?|exécute[rz]?)\b[^`]*`([^`]+)`", re.I)
_REPLACE = re.compile(
    rf"\b(?:replace|change|substitute|remplace[rz]?|change[rz])\s+{_Q}(.+?)\s?[`\"'“”«»]\s+(?:with|by|to|par|en)\s+"
    rf"{_Q}(.*?)\s?[`\"'“”«»]\s+(?:in|into|dans)\s+(?:the file |le fichier )?(\S+)",
    re.I | re.S,
)
_CREATE = re.compile(
    r"\b(?:create|make|add|crée[rz]?|ajoute[rz]?)\s+(?:me\s+)?(?:a |the |un |le )?(?:new |nouveau )?(?:file |fichier )?"
    r"(?:named |called |nommé |appelé )?(\S+)\s+(?:with|containing|avec|contenant)\s*"
    r"(?:the |le )?(?:text|content|contents|contenu|texte)?\s*:?\s*(.+)",
    re.I | re.S,
)
_LIST = re.compile(
    r"(?:^|\b)(?:list|liste[rz]?|ls)\b(?!\w)(?:.{0,30}\b(?:files?|fichiers?|folder|directory|dossier|répertoire)\b|\s*$|\s+\S+/?\s*$)"
    r"|\b(?:what|which|quels?)\b.{0,25}\b(?:files|fichiers)\b"
    r"|\b(?:in|dans)\s+(?:this|the current|ce|le)\s+(?:folder|directory|dossier|répertoire)\b|\bthis folder\b",
    re.I,
)
_FOLDER = re.compile(r"\b(?:in|of|under|dans|de|sous)\s+(?:the |le |la )?[`\"']?([\w.\-]+(?:/[\w.\-]*)*)[`\"']?", re.I)
_LISTED = re.compile(r"^\s*(?:please\s+)?(?:list|liste[rz]?|ls)\s+[`\"']?([\w.\-]*/[\w.\-/]*)[`\"']?[.?!]?\s*$", re.I)
_FIND_FILE = re.compile(
    r"\b(?:find|locate|where(?:'s| is| are)|trouve[rz]?|cherche[rz]?|où (?:est|sont))\b.{0,25}?\b(?:files?|fichiers?)\b"
    r"(?:\s+(?:named|called|like|matching|nommés?|appelés?|comme))?\s+(.+)",
    re.I,
)
_LINES = re.compile(r"\b(?:lines?|lignes?)\s+(\d+)(?:\s*(?:-|–|to|à|and|et)\s*(\d+))?", re.I)
_GLOB = re.compile(r"(?<!\S)\S*\*\S*")


def parse_intent(text: str) -> Intent:
    """Return the intent of a message."""
    text = text.strip()
    french = is_french(text)
    for recognise in (_change, _reading, _searching):
        if (intent := recognise(text)) is not None:
            return msgspec.structs.replace(intent, french=french)
    if _HELP.search(text):
        return Intent(kind="help", french=french)
    # A longer question names something in the project, which is looked up.
    if _ABOUT.search(text) and len(text.split()) <= _MOST_ABOUT_WORDS:
        return Intent(kind="about", french=french)
    terms = key_terms(text)
    if _GREETING.match(text) and len(text.split()) <= 4:
        return Intent(kind="greet", french=french)
    return Intent(kind="lookup", terms=terms, french=french)


def is_french(text: str) -> bool:
    """Return whether the words look French rather than English."""
    words = {word.lower() for word in re.findall(r"[^\W\d_]+", text)}
    return len(words & _FRENCH) > len(words & {"the", "is", "in", "what", "where", "how", "are", "of", "to", "find"})


def key_terms(text: str) -> list[str]:
    """Return up to eight words that identify the subject of a question: quoted ones, then names, then the rest."""
    quoted = [next(group for group in groups if group) for groups in _QUOTED.findall(text)]
    words = [word.rstrip(".-/") for word in _WORD.findall(_QUOTED.sub(" ", text))]
    words = [word for word in words if len(word) > 1 and word.lower() not in _STOP_WORDS]
    names = [word for word in words if "_" in word or "." in word or re.search(r"[a-z][A-Z]|\d", word)]
    return list(dict.fromkeys([*quoted, *names, *words]))[:8]


def _change(text: str) -> Intent | None:
    if match := _RUN.search(text):
        return Intent(kind="run", command=match[1].strip())
    if match := _REPLACE.search(text):
        return Intent(kind="replace", old=match[1], new=match[2], path=_clean(match[3]))
    if (match := _CREATE.search(text)) and _PATH.search(match[1]):
        return Intent(kind="create", path=_clean(match[1]), new=_content(match[2]))
    return None


def _reading(text: str) -> Intent | None:
    if _LIST.search(text) and not _GLOB.search(text):
        folder = _LISTED.search(text) or _FOLDER.search(text)
        name = folder[1] if folder and folder[1].lower() not in _STOP_WORDS | {"current", "dossier"} else ""
        return Intent(kind="list", path=name.rstrip("/"))
    path = _PATH.search(text)
    if path is None or _FIND_FILE.search(text) or re.match(r"(?:grep|où|where)\b", text, re.I):
        return None
    rest = text[: path.start()] + " " + text[path.end() :]
    lines = _LINES.search(rest)
    span = (int(lines[1]), int(lines[2] or lines[1])) if lines else None
    rest = _LINES.sub(" ", rest)
    plain = re.sub(
        r"\b(?:what(?:'s| is)?|show|read|open|cat|display|print|lis|lire|affiche|ouvre|contient)\b", " ", rest
    )
    return Intent(kind="read", path=path[1], lines=span, terms=key_terms(plain))


def _searching(text: str) -> Intent | None:
    glob = _GLOB.search(text)
    if glob and re.search(r"\b(?:find|list|files?|trouve|liste|fichiers?)\b", text, re.I):
        return Intent(kind="find_file", path=_clean(glob[0]))
    if match := _FIND_FILE.search(text):
        return Intent(kind="find_file", path=_clean(match[1].split()[0]))
    return None


def _clean(path: str) -> str:
    return path.strip().strip("`\"'«»“”@,;:!?()").rstrip(".")


def _content(text: str) -> str:
    """Return the text inside a fence or quotes, else the text as it is."""
    if match := re.search(r"```[^\n]*\n(.*?)```", text, re.S):
        return match[1]
    text = text.strip()
    if len(text) > 1 and (text[0], text[-1]) in {('"', '"'), ("'", "'"), ("`", "`"), ("«", "»"), ("“", "”")}:
        text = text[1:-1].strip(" ") if text[0] == "«" else text[1:-1]
    return text if text.endswith("\n") else f"{text}\n"
