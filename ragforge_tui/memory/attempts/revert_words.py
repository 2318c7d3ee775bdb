"""Phrases with which users ask to take an edit back, in eight languages."""

from __future__ import annotations

import re

MOST_WORDS = 40
"""A longer message is about other things too."""
_PHRASES = re.compile(
    # en
    r"\b(?:revert|undo|roll ?back|back out|take) (?:that|this|it|those|these|the (?:last |previous )?"
    r"(?:change|edit|commit)s?|my last|everything|all)(?: back)?\b|\bput (?:it|that|this|them|both|all|everything|"
    r"the \w+) back\b|\bchange (?:it|that|this) back\b|\bback to (?:how|what|the way) it was\b|"
    r"\b(?:please|no,?) revert\b|^revert\b|"
    r"\brestore the (?:old|previous|original)\b|"
    # fr
    r"\b(?:annule|annulez|défais|défaites|retire|retirez)(?:-| )(?:ça|cela|ceci|le|la|les|tout|cette|ce)\b|"
    r"\breviens(?: en arrière| à )|\brevenez (?:en arrière|à )|\bremets? (?:tout |le |la |les |ça |-le )?comme avant\b|"
    r"\bremets(?:-le|-la|-les)? comme\b|\bcomme (?:c'était )?avant\b.*\bremets\b|"
    # de
    r"\b(?:mach|nimm|nehm|macht?|machen sie|nehmen sie) (?:das|es|dies|die änderung|alles)(?: bitte)?(?: wieder)? "
    r"(?:rückgängig|zurück)\b|\brückgängig machen\b|\bzurücknehmen\b|\bwieder (?:so )?wie (?:vorher|zuvor|vorhin)\b|"
    r"\bstell (?:das|es) (?:bitte )?wieder her\b|"
    # es
    r"\b(?:deshaz|deshace|revierte|revertir|deshacer) (?:eso|esto|lo|el|la|ese|este|todo)\b|\bdeshazlo\b|"
    r"\brev(?:iérte|ertir)lo\b|\bvuelve (?:atrás|a como estaba)\b|\bdéjalo como estaba\b|"
    # it
    r"\b(?:annulla|ripristina|disfa) (?:questo|questa|quello|tutto|la|le|il|lo)\b|\bannullalo\b|\bripristinalo\b|"
    r"\btorna (?:indietro|a come era)\b|\bcom'era prima\b|"
    # nl
    r"\b(?:maak|draai|zet) (?:dat|dit|het|alles)(?: weer| maar)? (?:ongedaan|terug)\b|"
    # pt
    r"\b(?:desfaz|desfaça|reverte|reverta|desfazer|reverter) (?:isso|isto|essa|esse|esta|este|a|o|tudo)\b|"
    r"\bvolta(?:r)? (?:atrás|ao que era|como estava)\b|\bdeixa como estava\b|"
    # ru
    r"\b(?:откати|отмени|верни|откатите|отмените|верните) (?:это|всё|все|обратно|как было|изменени)|\bверни как было\b",
    re.IGNORECASE,
)


def wants_back(message: str) -> bool:
    """Return whether a user asks to take back what was just done."""
    text = " ".join(message.split())
    return len(text.split()) <= MOST_WORDS and _PHRASES.search(text) is not None


_SAID_AFTERWARDS = re.compile(
    r"\b(?:undo|undid|undone|revert(?:ed)?|rolled back|took (?:it|that|this) back|annulé\w*|défait|retiré|"
    r"zurückgenommen|rückgängig|zurückgesetzt|deshecho|revertido|annullato|ripristinato|teruggedraaid|ongedaan|"
    r"desfeito|desfiz|reverti|отменил\w*|откатил\w*)\b",
    re.IGNORECASE,
)


def explains(message: str) -> bool:
    """Return whether a user's message after an undo is about it, and so gives its reason."""
    text = " ".join(message.split())
    return len(text.split()) <= MOST_WORDS and _SAID_AFTERWARDS.search(text) is not None
