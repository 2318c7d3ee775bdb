"""The reader makes a tree of anything, loses nothing, and says where it had to guess."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragforge_tui.personas.luciform import Luciform, bare
from ragforge_tui.personas.reader import MAX_DIAGNOSTICS, read

FILES = Path(__file__).parent / "files"
PIECES = [
    *"<>/=\"'! ?-[]&;aé⛧\n\t\r",
    "\ufe0f",
    "\u200d",
    "\x00",
    "\ud800",
    "<!--",
    "-->",
    "<![CDATA[",
    "]]>",
    "<?",
    "?>",
    "<a>",
    "</a>",
    "<b x='1'>",
    "</b>",
    "<a b=c/>",
    "<!DOCTYPE x [<!ENTITY e 'f'>]>",
    "&amp;",
]


def names(document: Luciform) -> list[tuple[str, int]]:
    return [(node.bare_name, depth) for node, depth in document.walk() if node.kind == "element"]


def said(text: str) -> list[str]:
    return [str(diagnostic) for diagnostic in read(text).diagnostics]


@pytest.mark.parametrize("name", ["Algareth_dynamic", "ShadeOS_dynamic"])
def test_real_files_are_read_without_a_word(name: str) -> None:
    text = (FILES / f"{name}.luciform").read_bytes().decode()
    document = read(text)
    assert "".join(document.pieces()) == text
    assert document.diagnostics == []
    assert document.root is not None
    assert document.root.attribute("type") == "✶entity_init_spell"
    found = [name for name, _ in names(document)]
    assert {"semantic_layer", "internal_response", "manifestation"} <= set(found)
    layer = next(node for node, _ in document.walk() if node.bare_name == "semantic_layer")
    assert layer.name.startswith("\ufe0f")


def test_inline_tags_and_cdata_belong_to_the_text() -> None:
    document = read("<a>I am <b>Shade</b> — <![CDATA[<i> & ]]>here<!-- not this --></a>")
    assert document.root is not None
    assert document.text_of(document.root) == "I am Shade — <i> & here"


@given(st.lists(st.sampled_from(PIECES), max_size=60).map("".join))
def test_whatever_it_is_given_nothing_is_lost(text: str) -> None:
    document = read(text)
    assert "".join(document.pieces()) == text
    for diagnostic in document.diagnostics:
        lines = text.split("\n")
        assert 1 <= diagnostic.line <= len(lines)
        assert 1 <= diagnostic.column <= len(lines[diagnostic.line - 1]) + 1


@given(st.text(max_size=200))
def test_any_text_returns(text: str) -> None:
    assert "".join(read(text).pieces()) == text


@pytest.mark.parametrize(
    ("text", "tree", "word"),
    [
        ("<a><b>hi<c>x</c></a>", [("a", 0), ("b", 1), ("c", 1)], "1:4 <b> is never closed"),
        ("<a><b></a></b>", [("a", 0), ("b", 1)], "1:11 </b> has no opening tag"),
        ("<⛧a>x</a>", [("a", 0)], "1:6 </a> closes an element that is spelled differently"),
        ("<a b=c d='1'>x</a>", [("a", 0)], "1:6 a value without quotes"),
        ('<a b="1\nc>x</a>', [("a", 0)], '1:6 a value lacks its closing "'),
        ("<a x='1' x='2'/>", [("a", 0)], "1:10 the attribute x is given twice; the first counts"),
        ("<a/>\n<b/>", [("a", 0), ("b", 0)], "2:1 <b> is an additional root"),
        ("<a>if i <n; <b/></a>", [("a", 0), ("b", 1)], "1:9 <n; has no '>' and is read as text"),
        ("<a>1 < 2 && <3</a>", [("a", 0)], ""),
        ("<a>&amp;&x;</a>", [("a", 0)], ""),
        ("<a><!-- never closed</a>", [("a", 0)], "1:4 an unterminated comment is read as text"),
        ("plain words", [], "1:1 no element: all of it is text"),
        ("<?xml version='1.0'?><!DOCTYPE a [<!ENTITY e SYSTEM 'file:///etc/passwd'>]><a>&e;</a>", [("a", 0)], ""),
        ("```xml\n<a>x</a>\n```", [("a", 0)], ""),
        ("<🜲rituel><élan/></🜲rituel>", [("rituel", 0), ("élan", 1)], ""),
        ('<a x="1"⛧y="2"/>', [("a", 0)], ""),
    ],
)
def test_texts_that_a_strict_parser_refuses(text: str, tree: list[tuple[str, int]], word: str) -> None:
    assert names(read(text)) == tree
    if word:
        assert word in said(text)
    else:
        assert said(text) == []


def test_one_fault_is_reported_once() -> None:
    assert said("<a><!-- never closed</a>") == ["1:4 an unterminated comment is read as text"]
    assert said("<a><? x></a>") == ["1:4 a declaration that ends with '>', not with '?>'"]


def test_a_match_inside_a_token_does_not_count() -> None:
    document = read("<a><!-- <b> </a> --><c t='<d>'>x</c>" + "<e f='" + "<g>" * 100 + "'/></a>")
    assert [name for name, _ in names(document)] == ["a", "c", "e"]
    assert document.diagnostics == []


def test_faults_beyond_those_kept_are_counted() -> None:
    document = read("<a>" + "</b>" * 3_000 + "</a>")
    assert (len(document.diagnostics), document.unlisted) == (MAX_DIAGNOSTICS, 3_000 - MAX_DIAGNOSTICS)
    document = read("<a>" * 1_500)
    assert (len(document.diagnostics), document.unlisted) == (MAX_DIAGNOSTICS, 2 * 1_500 - 1 - MAX_DIAGNOSTICS)
    assert document.diagnostics[-1].column == 3 * MAX_DIAGNOSTICS - 2


def test_entities_are_left_as_they_are() -> None:
    document = read("<a t='&lt;&e;'>&lt;</a>")
    assert document.root is not None
    assert document.root.attribute("t") == "&lt;&e;"
    assert document.text_of(document.root) == "&lt;"


def test_names_are_found_under_their_letters() -> None:
    assert [bare(name) for name in ("\ufe0fSemantic_Layer", "⛧x", "É", "⛧", "")] == [
        "semantic_layer",
        "x",
        "é",
        "⛧",
        "",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "<a>" * 25_000,
        "<a>" * 25_000 + "</a>" * 25_000,
        "<a><b>" * 12_000 + "</a>" * 12_000,
        "<p>" + "<q>x" * 25_000 + "</p>",
        "<a " + "b=1 " * 75_000 + ">",
        "<a " + "b='1 " * 75_000 + ">",
        '<a b="<" ' * 50_000,
        "<" * 1_1_000,
        "<!--" * 75_000,
        "<![CDATA[" * 50_000,
        "</a>" * 50_000,
        "<a" * 75_000,
    ],
    ids=lambda text: text[:12],
)
def test_deep_wide_and_broken_texts_are_read(text: str) -> None:
    document = read(text)
    assert "".join(document.pieces()) == text
    assert len(document.diagnostics) <= MAX_DIAGNOSTICS


@pytest.mark.parametrize("closer", ["</a", "</>", "</a b='c'>", "</a >", "</a x"])
@pytest.mark.parametrize("open_", [0, 1_200])
def test_end_tags_of_every_shape_end_where_they_are_written(closer: str, open_: int) -> None:
    text = "<a>" * open_ + closer * 1_200 + "<b>"
    document = read(text)
    assert "".join(document.pieces()) == text
    assert len(document.diagnostics) + document.unlisted >= 1
    if open_:
        depths = [depth for node, depth in document.walk() if node.kind == "element"]
        assert max(depths) == 1_199
        assert not any(node.kind == "stray" for node, _ in document.walk())
    else:
        strays = [document.source(node) for node, _ in document.walk() if node.kind == "stray"]
        assert strays == [closer.removesuffix(" x")] * 1_200
