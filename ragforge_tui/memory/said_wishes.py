"""Wishes that the user states in so many words: "from now on …", "never …", "I prefer …", in eight languages.

A wish holds for the turns and conversations to come, so it is stored at once, without a summary and without a model.
Precision comes first: a wish that was none is sent with every conversation. Questions, stories ("I have never …") and
choices for now ("I prefer the second one") are none. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Literal, TypeVar

import msgspec

from ragforge_tui.memory.keyterms import stem
from ragforge_tui.memory.language import STOP_WORDS
from ragforge_tui.memory.prose import cut, sentences, user_prose

WISH_CHARS = 300
"""Characters of a wish; the rest of a longer sentence is cut."""
_FEWEST_WORDS = 3
_MOST_LISTED = 10
"""Points below a heading such as "House rules:"."""
_LOOKED_AT = 2_000
"""Characters at the start and at the end of a message that are read: what lies between is mostly pasted."""
_ALIKE = 0.8
_SAME_SUBJECT = 0.3
"""Share of words of the shorter of two wishes from which one that says "instead" corrects the other."""
_SAME_WORDS = 0.6
"""The same of one that only says "from now on"."""
_FEWEST_SHARED = 2
"""Words that two wishes about the same subject share at least: one alone is in too many."""

_POLITE = (
    r"(?:(?:and|but|also|so|then|please|ok|okay|bitte|und|aber|auch|et|mais|aussi|s['’]il (?:te|vous) pla[iî]t|"
    r"y|pero|también|por favor|e|ma|anche|per favore|en|maar|ook|alsjeblieft|alstublieft|graag|mas|também|и|но|также|"
    r"пожалуйста)[,:]? |(?:yes|no|thanks|one more thing|ja|nein|danke|oui|non|merci|sí|gracias|sì|grazie|nee|sim|não|"
    r"obrigad[oa]|да|нет|спасибо)[,:] )*"
)
_STANDING = re.compile(
    r"\b(?:from now on|from here on|going forward|in (?:the )?future,|house rules?\b|as a rule,|"
    r"ab jetzt|von (?:jetzt|nun) an|ab sofort|künftig|in zukunft|hausregeln?|"
    r"désormais|dorénavant|à partir de maintenant|à l['’]avenir,|"
    r"de ahora en adelante|a partir de ahora|en adelante|en lo sucesivo|"
    r"d['’]ora in (?:poi|avanti)|da ora in (?:poi|avanti)|"
    r"vanaf nu|voortaan|in het vervolg|"
    r"a partir de agora|de agora em diante|daqui em diante|daqui para a frente|"
    r"отныне|с этого момента|впредь|с этих пор|в дальнейшем)(?:\b|(?<=[,:]))",
    re.I,
)
"""Words that make a rule of a sentence wherever they stand in it."""
_PREFERRED = re.compile(
    r"\b(?:i (?:strongly |really |generally |usually )?prefer|i['’]d (?:prefer|rather you)|i would (?:prefer|"
    r"rather you)|"
    r"ich bevorzuge|ich ziehe .{2,60} vor\b|mir (?:ist|wäre|sind) .{2,60} lieber|je préfère|je préférerais|prefiero|"
    r"preferiría|"
    r"preferisco|preferirei|ik heb liever|ik geef de voorkeur|prefiro|preferia|(?:я )?предпочитаю)",
    re.I,
)
_CHOSEN_NOW = re.compile(
    r"\b(?:option|variante?|the (?:first|second|third|last|other|former|latter)|this one|that one|number \w+|"
    r"erste[nr]?|zweite[nr]?|première?|deuxième|seconde?|primer[oa]?|segund[oa]|prim[oa]|second[oa]|eerste|tweede|"
    r"primeir[oa]|перв\w+|втор\w+)\b|\b[A-D]\)?[.!]?$",
    re.I,
)
"""Choice among what was offered, which holds for this time."""
_ALWAYS = (
    r"(?:always|never|don['’]t ever|do not ever|immer|stets|nie|niemals|toujours|ne \w+ jamais|n['’]\w+ jamais|"
    r"siempre|nunca|jamás|"
    r"sempre|mai|non \w+ mai|no \w+ (?:nunca|jamás)|não \w+ nunca|altijd|nooit|jamais|всегда|никогда)"
)
_ORDER = re.compile(
    rf"^{_POLITE}(?:{_ALWAYS}|"
    # A condition or a place first: "In tests, never …", "For commits: always …".
    rf"(?:in|for|when|before|after|with|on|at|if|unless|bei|in|für|vor|nach|wenn|mit|dans|pour|avant|après|quand|avec|en|"
    rf"para|antes|después|cuando|con|per|prima|dopo|quando|voor|na|als|bij|em|depois|в|для|перед|после|при|когда) "
    rf"[^.!?]{{2,60}}[,:] ?{_ALWAYS})\s+(?P<rest>\S.*)",
    re.I,
)
_OBLIGED = re.compile(
    r"^"
    + _POLITE
    + r"(?:you (?:must|should|shall) (?:always|never)|du (?:sollst|musst|darfst) (?:immer|nie|niemals|stets)|"
    r"(?:tu dois|vous devez) (?:toujours|ne jamais)|debes? (?:siempre|nunca)|no debes? nunca|devi sempre|non devi mai|"
    r"je moet altijd|je mag nooit|dev[ea]s? sempre|nunca dev[ea]s?|ты должен всегда|ты никогда не должен)\b",
    re.I,
)
_VERB_FIRST = re.compile(
    r"^" + _POLITE + r"(?P<verb>[^\W\d_]+(?:['’][^\W\d_]+)?) (?:(?:bitte|das|es|le|la|les|lo|het) )?"
    r"(?:immer|stets|nie|niemals|toujours|siempre|nunca|sempre|altijd|nooit|всегда|никогда)\b",
    re.I,
)
"""An imperative with its adverb after it, as most languages have it: "Nutze immer …", "Usa siempre …"."""
_NOT_FIRST = re.compile(
    r"^(?:i|you|we|they|he|she|it|that|this|there|what|which|who|why|how|ich|du|wir|ihr|er|sie|es|das|die|der|dies|man|"
    r"ist|war|sind|hat|habe|wird|je|tu|nous|vous|il|elle|on|ce|c['’]est|ça|est|a|yo|tú|él|ella|nosotros|eso|esto|es|"
    r"está|"
    r"ha|io|lui|lei|noi|questo|quello|è|ik|jij|je|wij|we|hij|zij|ze|het|dat|dit|is|was|eu|ele|ela|nós|isso|isto|é|"
    r"я|ты|мы|он|она|они|это|то|so|wie|als|fast|casi|quasi|bijna|quase|почти|presque)$",
    re.I,
)
"""Words that begin a statement rather than an order."""
_NO_ORDER = re.compile(
    r"^(?:mind|seen?|heard?|had|has|have|got|been|was|were|thought|knew|the same|a |an |getting|fails?|failed|failing|"
    r"returns?|throws?|worked|happen(?:s|ed)?|there|wieder|derselbe|dieselbe|das gleiche|la même|le même|lo mismo|"
    r"lo stesso|hetzelfde|o mesmo|то же)\b",
    re.I,
)
_REMEMBER = re.compile(
    r"^"
    + _POLITE
    + r"(?:remember(?! when\b| how\b| the time\b)|keep in mind|note for later|merk dir|denk (?:bitte )?daran|"
    r"retiens|souviens-toi|n['’]oublie pas|rappelle-toi|recuerda|ten en cuenta|ricorda(?:ti)?|tieni presente|onthoud|"
    r"lembra(?:-te|-se)?|lembre-se|запомни)\b[,:]?\s+\S",
    re.I,
)
_EVERYWHERE = re.compile(
    r"\b(?:everywhere|in (?:all|every|any)(?: of)?(?: my)? (?:projects?|folders?|repositor(?:y|ies)|repos?)|"
    r"in general|überall|"
    r"in (?:allen|jedem) (?:meinen )?projekte?n?|grundsätzlich|partout|dans tous (?:mes|les) projets|en todas partes|"
    r"en todos (?:mis|los) proyectos|ovunque|in tutti i (?:miei )?progetti|overal|in al (?:mijn|de) projecten|"
    r"em (?:todos os|qualquer) (?:meus )?projet?os?|em todo lugar|везде|во всех (?:моих )?проектах)\b|"
    # How to be answered does not depend on the folder.
    r"\b(?:answers?|reply|replies|respond|call me|antwort\w*|nenn mich|répon\w+|réponses?|appelle-moi|respond\w+|"
    r"respuestas?|"
    r"llámame|rispond\w+|risposte?|chiamami|antwoord\w*|noem me|respost\w+|chama-me|отвечай|ответы|называй меня)\b",
    re.I,
)
_CHANGED = re.compile(
    r"\b(?:instead(?! of)|no longer|any ?more|any longer|not .{1,40} but|changed my mind|stattdessen|nicht mehr|"
    r"kein\w* mehr|sondern|à la place|ne .{1,40} plus|en su lugar|ya no|invece(?! di)|non più|niet meer|"
    r"geen .{1,40} meer|in plaats daarvan|em vez disso|já não|não .{1,40} mais|вместо этого|больше не|теперь)\b",
    re.I,
)
"""Words of a sentence that takes something back, not those of a rule such as "x instead of y"."""
_THAT = re.compile(
    r"^" + _POLITE + r"(?:remember|keep in mind|note|merk dir|denk daran|retiens|souviens-toi de|n['’]oublie pas|"
    r"recuerda|ricorda(?:ti)?|onthoud|lembra(?:-te)?(?: d)?|lembre-se d|запомни) ?"
    r"(?:that|this|it|das|dies|ça|cela|eso|esto|ciò|"
    r"questo|dat|dit|isso|isto|это)[.!]*$",
    re.I,
)
"""An order to remember what the sentence before said."""
_POINT = re.compile(r"^[ \t]*(?:[-*+•]|\d{1,3}[.)])[ \t]+(\S.*)$")
_QUOTE = re.compile(r"^[ \t]*>.*$", re.M)
_REFERRING = re.compile(r"\b(?:that|this|it|das|dies|ça|cela|eso|esto|ciò|questo|dat|dit|isso|isto|это)\b", re.I)
_FEW_WORDS = 6
_WORDS = re.compile(r"-{0,2}\w[\w.+#/'’-]*")
"""Words, and options of commands, in which rules often differ."""
_SMALL = frozenset().union(*STOP_WORDS.values())
_LEADING = re.compile(rf"^{_POLITE}", re.I)

Wish = TypeVar("Wish")


class SaidWish(msgspec.Struct, frozen=True):
    """A wish in the user's words, and where it holds."""

    text: str
    scope: Literal["user", "folder"]


def said_wishes(text: str) -> list[SaidWish]:
    """Return the wishes that a message states, in their order."""
    looked_at = text if len(text) <= 2 * _LOOKED_AT else f"{text[:_LOOKED_AT]}\n\n{text[-_LOOKED_AT:]}"
    looked_at = _QUOTE.sub("", looked_at)
    listed = _listed(looked_at)
    said = sentences(user_prose(looked_at))
    found = [*listed, *(one for one in said if is_wish(one))]
    found += [before for before, one in pairwise(said) if _THAT.match(one) and not before.endswith("?")]
    wishes: dict[str, SaidWish] = {}
    for sentence in found:
        kept = _LEADING.sub("", " ".join(sentence.split())).strip()
        if len(kept.split()) >= _FEWEST_WORDS and not kept.endswith(":"):
            scope: Literal["user", "folder"] = "user" if _EVERYWHERE.search(kept) else "folder"
            wish = cut(kept[:1].upper() + kept[1:], WISH_CHARS)
            wishes.setdefault(wish.casefold(), SaidWish(wish, scope))
    return list(wishes.values())


def is_wish(sentence: str) -> bool:
    """Return whether a sentence of the user states a wish for the time to come."""
    sentence = sentence.strip()
    if sentence.endswith(("?", "？")) or len(sentence.split()) < _FEWEST_WORDS:
        return False
    if _REFERRING.search(sentence) and len(sentence.split()) < _FEW_WORDS:
        return False  # "Never do that again" means nothing without what was said before.
    if _STANDING.search(sentence) or _OBLIGED.match(sentence) or _REMEMBER.match(sentence):
        return True
    if _PREFERRED.search(sentence):
        return _CHOSEN_NOW.search(sentence) is None
    if (order := _ORDER.match(sentence)) is not None:
        return _NO_ORDER.match(order["rest"]) is None
    verb = _VERB_FIRST.match(sentence)
    return verb is not None and _NOT_FIRST.match(verb["verb"]) is None


def _listed(text: str) -> list[str]:
    """Return the points of a list below a line such as "From now on:"."""
    found: list[str] = []
    inside = False
    for line in text.splitlines():
        point = _POINT.match(line)
        if point is not None and inside and len(found) < _MOST_LISTED:
            found.append(point[1])
        elif line.strip():
            inside = line.rstrip().endswith(":") and _STANDING.search(line) is not None
    return found


def alike(a: str, b: str) -> bool:
    """Return whether two wishes say the same, give or take some words."""
    first, second = _stems(a), _stems(b)
    return bool(first and second) and len(first & second) / max(len(first), len(second)) >= _ALIKE


def corrected(text: str, earlier: Iterable[Wish], text_of: Callable[[Wish], str]) -> Wish | None:
    """Return the earlier wish that a new one corrects: it says that something changes, about the same subject."""
    if _CHANGED.search(text) is not None:
        return most_alike(text, earlier, text_of, least=_SAME_SUBJECT)
    if _STANDING.search(text) is not None:
        return most_alike(text, earlier, text_of, least=_SAME_WORDS)
    return None


def most_alike(text: str, earlier: Iterable[Wish], text_of: Callable[[Wish], str], *, least: float) -> Wish | None:
    """Return the one whose words a text shares most of; None if that is less than a share of the shorter one."""
    own = _stems(text)
    best: tuple[float, Wish] | None = None
    for one in earlier:
        other = _stems(text_of(one))
        if len(own & other) >= min(_FEWEST_SHARED, len(own), len(other)) > 0:
            share = len(own & other) / min(len(own), len(other))
            if share >= least and (best is None or share > best[0]):
                best = share, one
    return best[1] if best is not None else None


def _stems(text: str) -> set[str]:
    """Return the stems of the words that say what a wish is about."""
    plain = _LEADING.sub("", _STANDING.sub(" ", text)).casefold()
    found = (word.strip("'’-.") if word[0] != "-" else word for word in _WORDS.findall(plain))
    return {stem(word) for word in found if word and word not in _SMALL and re.fullmatch(_ALWAYS, word) is None}
