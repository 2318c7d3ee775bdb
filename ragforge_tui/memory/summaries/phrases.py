"""The few words of its own an extractive summary needs, by language.

Used by `extractive` and `actions`. A language that is missing here gets English words around its own sentences.
"""

from __future__ import annotations

import msgspec


class Phrases(msgspec.Struct, frozen=True, kw_only=True):
    """Words around quoted sentences; `{}` is what they are put around."""

    quote: str
    asked: str
    said: str
    then_asked: str
    then_said: str
    answer: str
    reply: str
    no_answer: str
    interrupted: str
    turn: str
    turns: str
    about: str
    began: str
    done: str
    found: str
    person: str
    read: str
    wrote: str
    edited: str
    created: str
    listed: str
    searched: str
    looked_for: str
    ran: str
    planned: str
    told: str
    used: str
    failed: str
    unknown: str
    matches: str
    entries: str
    lines: str
    exit: str
    times: str
    why: str
    and_more: str
    nothing: str
    conjunction: str


_EN = Phrases(
    quote="“{}”",
    asked="The person asked: {}",
    said="The person said: {}",
    then_asked="Then: {}",
    then_said="Then the person said: {}",
    answer="; the answer: {}",
    reply="; the reply: {}",
    no_answer="; there was no answer",
    interrupted=" (interrupted)",
    turn="Turn {}",
    turns="Turns {}–{}",
    about="About {}.",
    began="; it began with {}",
    done="Done: {}",
    found="Found: {}",
    person="The person: {}",
    read="read {}",
    wrote="wrote {}",
    edited="edited {}",
    created="created {}",
    listed="listed {}",
    searched="searched for {}",
    looked_for="looked for files like {}",
    ran="ran {}",
    planned="updated the plan",
    told="notified the person",
    used="used {}",
    failed="failed: {}",
    unknown="outcome unknown",
    matches="{} matches in {} files",
    entries="{} found",
    lines="lines {}",
    exit="exit status {}",
    times="{} times",
    why="{} → {}",
    and_more="and {} more",
    nothing="Nothing was said.",
    conjunction="and",
)

_FR = Phrases(
    quote="« {} »",
    asked="La personne a demandé : {}",
    said="La personne a dit : {}",
    then_asked="Puis : {}",
    then_said="Puis la personne a dit : {}",
    answer=" ; la réponse : {}",
    reply=" ; en retour : {}",
    no_answer=" ; sans réponse",
    interrupted=" (interrompue)",
    turn="Tour {}",
    turns="Tours {}–{}",
    about="Il est question de {}.",
    began=" ; tout a commencé par {}",
    done="Fait : {}",
    found="Trouvé : {}",
    person="La personne : {}",
    read="lu {}",
    wrote="écrit {}",
    edited="modifié {}",
    created="créé {}",
    listed="listé {}",
    searched="cherché {}",
    looked_for="cherché les fichiers comme {}",
    ran="exécuté {}",
    planned="mis à jour le plan",
    told="prévenu la personne",
    used="utilisé {}",
    failed="échec : {}",
    unknown="issue inconnue",
    matches="{} occurrences dans {} fichiers",
    entries="{} trouvés",
    lines="lignes {}",
    exit="code de sortie {}",
    times="{} fois",
    why="{} → {}",
    and_more="et {} autres",
    nothing="Rien n'a été dit.",
    conjunction="et",
)

PHRASES = {"en": _EN, "fr": _FR}


def phrases(language: str) -> Phrases:
    """The phrases of a language, English ones for a language without."""
    return PHRASES.get(language, _EN)
