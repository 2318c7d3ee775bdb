"""Language detection by stop words, and the stop words themselves, which searches leave out.

Used by recall (stems, full-text keys) and by all code that writes in the language of a conversation. It covers only
languages both graph backends have analyzers for. Detection by stop words needs no model and errs only on very short
texts, for which the answer is "unknown".
"""

from __future__ import annotations

import re
from datetime import datetime

_WORD = re.compile(r"[^\W\d_]+")
_SAMPLE = 4_000
"""Characters examined: more do not change the answer."""

STOP_WORDS: dict[str, frozenset[str]] = {
    language: frozenset(words.split())
    for language, words in {
        "en": "a about after all also am an and any are as at be been before being but by can could d did do does "
        "doing don for from get got had has have he her here him his how i if in into is it its just ll m may me might "
        "more most my no nor not now of off on or our out over own re s same shall she should so some such t than that "
        "the their them then there these they this those through to too up us ve very was we were what when where "
        "which while who whom why will with would you your",
        "fr": "a ai as au aussi aux avait avec avoir c ce cela ces cet cette comme comment d dans de des donc du elle "
        "elles en es est et eu fait fut il ils j je l la le les leur leurs lui m ma mais me mes moi mon n ne nos notre "
        "nous on ont ou où par pas pour qu quand que quel quelle quelles quels qui quoi s sa sans se ses si son sont "
        "sur t ta te tes toi ton tu un une va vos votre vous y à été être ça",
        "de": "aber als am an auch auf aus bei bin bis das dass dem den der des die du durch ein eine einem einen "
        "einer es für hat habe haben hatte ich ihm ihn ihr im in ist ja kann mein mich mir mit nach nicht noch nur ob "
        "oder sich sie sind so um und uns vom von vor war warum was wenn wer werden wie wieder wir wird wo zu zum zur",
        "es": "a al algo como con cuando de del desde donde e el ella ellos en entre era es esa ese eso esta este esto "
        "está fue ha han has hay he la las le les lo los me mi muy más más ni no nos o para pero por porque que "
        "qué quien quién se ser si sin sobre son su sus sí también te tengo ti tu tú un una uno y ya yo",
        "it": "a ai al alla anche che chi ci come con cosa da dal dalla degli dei del della delle di dove e ed era gli "
        "ha hai hanno ho i il in io la le lei lo loro lui ma me mi mia mio nel nella noi non o per perché più quale "
        "quando quello questa questo se si sono su sua suo te ti tu un una uno è",
        "nl": "aan al als bij dan dat de der deze die dit door een en er had heb hebben heeft het hij hoe hun ik in is "
        "je kan maar me meer met mij mijn naar niet nog nu of om omdat ons ook op over te toen tot u uit van veel voor "
        "waar waarom want was wat we wel wie wij worden wordt ze zich zij zijn zo zou",
        "pt": "a ao aos as até com como da das de dela dele do dos e ela ele em entre era essa esse esta este eu foi "
        "há isso isto já lhe mais mas me meu minha muito na nas nem no nos não nós o onde os ou para pela pelo por "
        "porque qual quando que quem se sem ser seu sua são só também te tem tu um uma você à é",
        "ru": "а без был была были было быть в вам вас весь во вот все вы где да для до его ее ей если есть еще же за "
        "и из или им их к как ко когда кто ли мне мы на не него нет ни но ну о об он она они от по под при с со так "
        "там тебя то только ты у уже чего чем что чтобы эта эти это этот я",
    }.items()
}

_LANGUAGES_OF = {
    word: tuple(language for language, words in STOP_WORDS.items() if word in words)
    for word in frozenset().union(*STOP_WORDS.values())
}

SMALL_TALK = frozenset(
    word
    for words in (
        "again all anyway bye come continue cool course done evening exactly fine go going good goodbye great hello "
        "hey hi keep let lets like look make maybe mean morning next nice nope ok okay oh perfect please really right "
        "same see sorry stop sure tell thank thanks think today tomorrow try wait want well yeah yep yes "
        "still meant ",
        "accord ah allez alors attends avance beaucoup bien bon bonjour bonne bonsoir comprends désolé encore fais "
        "merci mieux non nuit oui parfait peux plaît plus salut soirée super sûr vas veux "
        "voilà vois pourquoi",
        "abend bitte danke dank dir einmal ganz gehen geht genau gerne gut guten hallo jetzt klar lass los mach machen "
        "mal morgen nein nochmal prima schau schön sicher tag tschüss vielen "
        "warte weiter ",
        "adelante adiós bueno buenos claro días entonces espera favor genial gracias hola otra perfecto seguro sigue "
        "vale vez",
        "ancora aspetta avanti bene buongiorno certo ciao continua grazie ora perfetto prego sicuro sì",
        "alsjeblieft bedankt doei eens goed nee verder wacht zeker",
        "agora bem bom certeza obrigada obrigado olá perfeito sim",
        "давай дальше конечно нет подожди пожалуйста привет продолжай спасибо точно хорошо",
    )
    for word in words.split()
)
"""Greetings, thanks, assent: a sentence of these alone has no subject."""

CHAT_WORDS = SMALL_TALK | frozenset(
    word
    for words in (
        "commit push redo retry run test tests undo revert edit file check verify explain fix fails option diff",
        "refais vérifie vérifier montre explique relis corrige",
        "versuch zeig erklär lies prüf änderung ändere",
    )
    for word in words.split()
)
"""Words that keep a talk going: greetings, thanks, assent, go on. A message of these alone refers to nothing."""

STEMMERS = {
    "de": "german",
    "en": "english",
    "es": "spanish",
    "fr": "french",
    "it": "italian",
    "nl": "dutch",
    "pt": "portuguese",
    "ru": "russian",
}
"""Snowball's name of each language."""

_MONTHS = {
    "en": "January February March April May June July August September October November December",
    "fr": "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "de": "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
    "es": "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    "it": "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
    "nl": "januari februari maart april mei juni juli augustus september oktober november december",
    "pt": "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
    "ru": "января февраля марта апреля мая июня июля августа сентября октября ноября декабря",
}
_DAYS = {
    "en": "Monday Tuesday Wednesday Thursday Friday Saturday Sunday",
    "fr": "lundi mardi mercredi jeudi vendredi samedi dimanche",
    "de": "Montag Dienstag Mittwoch Donnerstag Freitag Samstag Sonntag",
    "es": "lunes martes miércoles jueves viernes sábado domingo",
    "it": "lunedì martedì mercoledì giovedì venerdì sabato domenica",
    "nl": "maandag dinsdag woensdag donderdag vrijdag zaterdag zondag",
    "pt": "segunda terça quarta quinta sexta sábado domingo",
    "ru": "понедельник вторник среда четверг пятница суббота воскресенье",
}
MONTHS = {language: names.split() for language, names in _MONTHS.items()}
DAYS = {language: names.split() for language, names in _DAYS.items()}


def language_of(text: str) -> str:
    """Return the language's two-letter code (``en``, ``fr``, …), empty if the text is too short or too mixed."""
    found = dict.fromkeys(STOP_WORDS, 0)
    for word in filter(_LANGUAGES_OF.__contains__, _WORD.findall(text[:_SAMPLE].casefold())):
        for language in _LANGUAGES_OF[word]:
            found[language] += 1
    ranked = sorted(((count, language) for language, count in found.items()), reverse=True)
    (best, language), (second, _) = ranked[0], ranked[1]
    return language if best >= 3 and best >= second * 1.2 else ""


def date_words(moment: datetime, language: str = "") -> str:
    """Return a date in the words of a question, such as ``8 May 2023 Monday``, in a language."""
    code = language if language in MONTHS else "en"
    return f"{moment.day} {MONTHS[code][moment.month - 1]} {moment.year} {DAYS[code][moment.weekday()]}"
