"""Scopes and references of each language, in small sources."""

# ruff: noqa: E501 (sources are easier to read in lines of their own)

from __future__ import annotations

from tests.support.code_index import Sources, parsed, scopes

PYTHON = {
    "app/__init__.py": "from .store import Store as Shop\nfrom app.util import *\n",
    "app/store.py": '''"""Stores."""
import os
from . import util
from .base import Base

LIMIT = 3

class Store(Base):
    """Keeps items.

    For long.
    """

    def __init__(self, log: "Log | None" = None):
        self.log = log

    @property
    def size(self) -> int:
        return LIMIT

    async def add(
        self,
        item,
    ):
        self.check(item)
        self.log.write(util.clean(item))
        os.remove(item)

        def inner():
            return self.size
        # behind
    # the last line

class Log:
    def write(self, text): ...
''',
    "app/base.py": "class Base:\n    def check(self, item):\n        raise NotImplementedError\n",
    "app/util.py": "# Cleans.\ndef clean(text):\n    return text.strip()\n\nUnion2 = dict[str, int]\n",
    "main.py": "import app\nfrom app import Shop, clean as tidy\n\ndef main():\n    shop = Shop()\n    shop.add(tidy(1))\n"
    "    app.Shop().check(2)\n    shop.unknown()\n",
}


def test_python() -> None:
    assert scopes("app/store.py", PYTHON["app/store.py"]) == [
        "constant LIMIT 6-6",
        "class Store 8-30",
        "method Store.__init__ 14-15",
        "method Store.size 17-19",
        "method Store.add 21-30",
        "function Store.add.inner 29-30",
        "class Log 34-35",
        "method Log.write 35-35",
    ]
    store = parsed("app/store.py", PYTHON["app/store.py"])
    assert store.scopes[0].doc == "Stores."
    assert store.scopes[2].doc == "Keeps items.\n\nFor long."
    assert store.scopes[5].signature == "async def add( self, item, )"
    assert "import os" in store.scopes[0].text and "def add" not in store.scopes[0].text
    assert parsed("app/util.py", PYTHON["app/util.py"]).scopes[1].doc == "Cleans."
    assert "type Union2 5-5" in scopes("app/util.py", PYTHON["app/util.py"])
    sources = Sources(**PYTHON)
    assert sources.edges("inherits") == {"app/store.py:Store -> app/base.py:Base"}
    assert sources.edges("imports") == {
        "app/__init__.py -> app/store.py:Store",
        "app/__init__.py -> app/util.py",
        "app/store.py -> app/util.py",
        "app/store.py -> app/base.py:Base",
        "main.py -> app/__init__.py",
        "main.py -> app/store.py:Store",
        "main.py -> app/util.py:clean",
    }
    assert sources.edges("calls") == {
        "app/store.py:Store.add -> app/base.py:Base.check",
        "app/store.py:Store.add -> app/store.py:Log.write",
        "app/store.py:Store.add -> app/util.py:clean",
        "main.py:main -> app/store.py:Store",
        "main.py:main -> app/store.py:Store.add",
        "main.py:main -> app/util.py:clean",
        "main.py:main -> app/base.py:Base.check",
    }
    assert {"app/store.py:Store.size -> app/store.py:LIMIT"} <= sources.edges("uses")
    assert sources.confidence("main.py:main -> app/util.py:clean") == 1.0
    assert sources.confidence("main.py:main -> app/store.py:Store.add") == 0.9
    assert {"os.remove", "shop.unknown"} <= sources.unresolved("calls")
    assert "os" in sources.unresolved("imports")


SCRIPT = {
    "src/index.ts": 'export { Store as Shop } from "./store";\nexport * from "./util";\n'
    'export { default as Main } from "./main";\n',
    "src/store.ts": """import { helper } from "./util.js";
/** Stores things. */
export class Store<T> extends Base implements I {
  private log: Logger = new Logger();
  constructor(private readonly db: Db) { super(); }
  async get(key: string): Promise<Item> { const v = await this.db.read(key); this.log.put(v); return v; }
  handler = (e: Event) => { this.get(e.x); };
}
class Base { run() {} }
interface I { run(): void }
class Db { read(k: string): Item { return helper(k) } }
type Item = { a: number };
class Logger { put(x: Item) {} }
""",
    "src/util.ts": "export const helper = (x?: any): any => x;\nexport function other() { return helper(1) }\n"
    "const LIMIT = 3;\nexport enum Color { Red }\n",
    "src/main.ts": """import { Shop, other, Color } from ".";
import * as util from "./util";
import fs from "fs";
export default function main(s: Shop) {
  s.get("a"); s.run(); other(); util.helper(fs.read()); const q = new Shop(1); q.handler(2); return Color.Red;
}
""",
    "src/view.tsx": 'import Main from "./main";\n'
    "export const View = ({a}: Props) => <Panel x={a} onClick={() => Main()}/>;\n"
    "function Panel(p: Props) { return <div/>; }\ninterface Props { a: string }\n",
    "tsconfig.json": '{"compilerOptions": {"baseUrl": "src"}}\n',
    "test/t.ts": 'import { other } from "util";\nother();\n',
}


def test_typescript() -> None:
    assert scopes("store.ts", SCRIPT["src/store.ts"]) == [
        "class Store 3-8",
        "method Store.constructor 5-5",
        "method Store.get 6-6",
        "method Store.handler 7-7",
        "class Base 9-9",
        "method Base.run 9-9",
        "interface I 10-10",
        "method I.run 10-10",
        "class Db 11-11",
        "method Db.read 11-11",
        "type Item 12-12",
        "class Logger 13-13",
        "method Logger.put 13-13",
    ]
    assert parsed("store.ts", SCRIPT["src/store.ts"]).scopes[1].doc == "Stores things."
    sources = Sources(**SCRIPT)
    assert sources.edges("inherits") == {
        "src/store.ts:Store -> src/store.ts:Base",
        "src/store.ts:Store -> src/store.ts:I",
    }
    assert sources.edges("calls") >= {
        "src/main.ts:main -> src/store.ts:Store",
        "src/main.ts:main -> src/store.ts:Store.get",
        "src/main.ts:main -> src/store.ts:Store.handler",
        "src/main.ts:main -> src/store.ts:Base.run",
        "src/main.ts:main -> src/util.ts:helper",
        "src/main.ts:main -> src/util.ts:other",
        "src/store.ts:Store.get -> src/store.ts:Db.read",
        "src/store.ts:Store.get -> src/store.ts:Logger.put",
        "src/view.tsx:View -> src/view.tsx:Panel",
        "src/view.tsx:View -> src/main.ts:main",
        "test/t.ts -> src/util.ts:other",
    }
    assert "src/main.ts:main -> src/util.ts:Color" in sources.edges("uses")
    assert sources.unresolved("imports") == {"fs.default"}


def test_javascript() -> None:
    sources = Sources(
        **{
            "a.js": 'const b = require("./b");\nconst { two: deux } = require("./b");\nfunction A() {}\n'
            "A.prototype.go = function () { b.one(); deux(); };\nmodule.exports = A;\n"
            "const obj = { m() { return 1 }, k: function () { return A() } };\n",
            "b.js": "exports.one = function () {};\nfunction two() {}\nmodule.exports.two = two;\n",
            "c.mjs": 'import A from "./a.js";\nexport const run = () => new A().go();\n',
        }
    )
    assert sources.edges("calls") == {
        "a.js:A.go -> b.js:one",
        "a.js:A.go -> b.js:two",
        "a.js:obj.k -> a.js:A",
        "c.mjs:run -> a.js:A",
        "c.mjs:run -> a.js:A.go",
    }


def test_go() -> None:
    store = (
        "package store\n\n// Shop sells.\ntype Shop struct {\n\t*Base\n\tbase *Base\n\titems map[string]Item\n}\n\n"
        "type Reader interface {\n\tRead() Item\n}\n\nfunc New(n int) *Shop { return &Shop{base: &Base{}} }\n\n"
        "func (s *Shop) Get(k string) (Item, error) {\n\ts.Run()\n\tx, err := find(k)\n\treturn x.Clone(), err\n}\n"
    )
    assert scopes("store.go", store) == [
        "struct Shop 4-8",
        "interface Reader 10-12",
        "method Reader.Read 11-11",
        "function New 14-14",
        "method Shop.Get 16-20",
    ]
    assert parsed("store.go", store).scopes[1].doc == "Shop sells."
    sources = Sources(
        **{
            "go.mod": "module example.com/app\n",
            "cmd/main.go": 'package main\n\nimport (\n\t"fmt"\n\tst "example.com/app/store"\n)\n\nfunc main() {\n'
            '\ts := st.New(3)\n\tfmt.Println(s.Get("a"))\n\ts.base.Run()\n\tvar r st.Reader = s\n\tr.Read()\n\thelp()\n}\n',
            "cmd/help.go": "package main\n\nconst Limit = 3\n\nfunc help() int { return Limit }\n",
            "store/store.go": store,
            "store/base.go": "package store\n\ntype Base struct{}\ntype Item struct{ a int }\nfunc (b *Base) Run() {}\n"
            "func (i Item) Clone() Item { return i }\nfunc find(k string) (Item, error) { return Item{a: 1}, nil }\n",
        }
    )
    assert sources.edges("calls") == {
        "cmd/main.go:main -> store/store.go:New",
        "cmd/main.go:main -> store/store.go:Shop.Get",
        "cmd/main.go:main -> store/store.go:Reader.Read",
        "cmd/main.go:main -> store/base.go:Base.Run",
        "cmd/main.go:main -> cmd/help.go:help",
        "store/store.go:Shop.Get -> store/base.go:Base.Run",
        "store/store.go:Shop.Get -> store/base.go:Item.Clone",
        "store/store.go:Shop.Get -> store/base.go:find",
    }
    assert sources.edges("inherits") == {"store/store.go:Shop -> store/base.go:Base"}
    assert "fmt" in sources.unresolved("imports")


def test_rust() -> None:
    round_rs = (
        "use super::Area;\nuse crate::util::*;\n/// Round.\n#[derive(Debug)]\npub struct Circle { inner: Option<Box<Circle>> }\n"
        "impl Circle {\n    pub const MAX: u8 = 1;\n    pub fn new(r: u8) -> Self { helper(); Self { inner: None } }\n"
        "    fn name(&self) -> Circle { self.area(); Self::new(3) }\n}\n"
        "impl Area for Circle {\n    fn area(&self) -> f64 { 1.0 }\n}\n"
    )
    assert scopes("round.rs", round_rs) == [
        "struct Circle 4-5",
        "constant Circle.MAX 7-7",
        "method Circle.new 8-8",
        "method Circle.name 9-9",
        "method Circle.area 12-12",
    ]
    assert parsed("round.rs", round_rs).scopes[1].doc == "Round."
    sources = Sources(
        **{
            "Cargo.toml": '[package]\nname = "my-app"\n',
            "src/lib.rs": "pub mod shapes;\nmod util;\npub use shapes::Circle as Round;\nuse crate::util::{self, helper as help};\n"
            "pub fn run() -> u8 {\n    let c = Round::new(1);\n    c.area();\n    util::deep::f(help());\n    c.name().area()\n}\n"
            "#[cfg(test)]\nmod tests {\n    use super::*;\n    fn t() { run(); Round::new(2); }\n}\n",
            "src/shapes/mod.rs": "mod round;\npub use self::round::Circle;\npub trait Area { fn area(&self) -> f64; }\n",
            "src/shapes/round.rs": round_rs,
            "src/util.rs": "pub fn helper() {}\npub mod deep;\n",
            "src/util/deep.rs": "pub fn f(x: ()) { super::helper(); }\n",
            "src/main.rs": "use my_app::run;\nfn main() { run(); std::process::exit(0); }\n",
        }
    )
    assert sources.edges("calls") >= {
        "src/lib.rs:run -> src/shapes/round.rs:Circle.new",
        "src/lib.rs:run -> src/shapes/round.rs:Circle.area",
        "src/lib.rs:run -> src/shapes/round.rs:Circle.name",
        "src/lib.rs:run -> src/util/deep.rs:f",
        "src/lib.rs:run -> src/util.rs:helper",
        "src/lib.rs:tests.t -> src/lib.rs:run",
        "src/lib.rs:tests.t -> src/shapes/round.rs:Circle.new",
        "src/shapes/round.rs:Circle.new -> src/util.rs:helper",
        "src/shapes/round.rs:Circle.name -> src/shapes/round.rs:Circle.area",
        "src/util/deep.rs:f -> src/util.rs:helper",
        "src/main.rs:main -> src/lib.rs:run",
    }
    assert sources.edges("inherits") == {"src/shapes/round.rs:Circle -> src/shapes/mod.rs:Area"}
    assert "std.process.exit" in sources.unresolved("calls")


def test_java() -> None:
    shop = """package a.b;

import a.c.Item;
import static a.c.Util.help;
import a.d.*;

/** Sells. */
public class Shop<T> extends Base implements Seller {
  static final int MAX = 1;
  private final Item item;
  Shop(Item item) { this.item = item; }
  public Item sell(String k) { help(k); item.use(); this.run(); Util2.go(); return new Item(1).copy().use(); }
  public Item sell(int k) { return sell("a"); }
  enum Kind { A; void q() {} }
}
"""
    assert scopes("Shop.java", shop) == [
        "class Shop 8-15",
        "constant Shop.MAX 9-9",
        "method Shop.Shop 11-11",
        "method Shop.sell 12-12",
        "method Shop.sell 13-13",
        "enum Shop.Kind 14-14",
        "method Shop.Kind.q 14-14",
    ]
    assert [item.ordinal for item in parsed("Shop.java", shop).scopes if item.name == "sell"] == [0, 1]
    sources = Sources(
        **{
            "a/b/Shop.java": shop,
            "a/b/Base.java": "package a.b;\nabstract class Base { void run() {} }\ninterface Seller { Object sell(String k); }\n",
            "a/c/Item.java": "package a.c;\npublic class Item { Item(int a) {} Item use() { return this; }\n"
            " Item copy() { return null; } }\n",
            "a/c/Util.java": "package a.c;\npublic class Util { public static void help(String s) {} }\n",
            "a/d/Util2.java": "package a.d;\npublic class Util2 { public static void go() {} }\n",
        }
    )
    assert sources.edges("calls") == {
        "a/b/Shop.java:Shop.sell -> a/b/Shop.java:Shop.sell",
        "a/b/Shop.java:Shop.sell -> a/b/Base.java:Base.run",
        "a/b/Shop.java:Shop.sell -> a/c/Item.java:Item",
        "a/b/Shop.java:Shop.sell -> a/c/Item.java:Item.copy",
        "a/b/Shop.java:Shop.sell -> a/c/Item.java:Item.use",
        "a/b/Shop.java:Shop.sell -> a/c/Util.java:Util.help",
        "a/b/Shop.java:Shop.sell -> a/d/Util2.java:Util2.go",
    }
    assert sources.confidence("a/b/Shop.java:Shop.sell -> a/b/Shop.java:Shop.sell") == 0.7
    assert sources.edges("inherits") == {
        "a/b/Shop.java:Shop -> a/b/Base.java:Base",
        "a/b/Shop.java:Shop -> a/b/Base.java:Seller",
    }


def test_c_and_cpp() -> None:
    header = """#pragma once
#include "base.hpp"
#define MAX_ITEMS 3
namespace app {
/// Sells.
class Shop : public Base {
 public:
  Shop(int n);
  Item* sell(const char* k);
  int inl() { return sell("a")->use(); }
  std::unique_ptr<Item> own;
};
}
int c_func(struct point *p);
"""
    assert scopes("shop.h", header) == [
        "constant MAX_ITEMS 3-3",
        "class app.Shop 6-12",
        "method app.Shop.Shop 8-8",
        "method app.Shop.sell 9-9",
        "method app.Shop.inl 10-10",
        "function c_func 14-14",
    ]
    sources = Sources(
        **{
            "include/shop.h": header,
            "include/base.hpp": "struct Item { int use(); };\nclass Base { public: void run() {} };\nusing Thing = Item;\n",
            "src/shop.cpp": '#include "shop.h"\nnamespace app {\nShop::Shop(int n) { run(); }\n'
            "Item* Shop::sell(const char* k) {\n  own->use();\n  auto s = Shop(3); s.inl();\n  Thing t; t.use();\n"
            "  return nullptr;\n}\n}\nint Item::use() { return MAX_ITEMS; }\n"
            'int main() { app::Shop s(1); s.sell("x"); return c_func(0); }\n',
            "src/c.c": '#include "../include/shop.h"\n#include <stdio.h>\ntypedef struct point { int x; } point_t;\n'
            "static int local(point_t *p) { return p->x; }\n/* Does. */\nint c_func(struct point *p)\n{\n"
            '  printf("x");\n  return local(p);\n}\n',
        }
    )
    assert sources.edges("calls") >= {
        "include/shop.h:app.Shop.inl -> src/shop.cpp:app.Shop.sell",
        "include/shop.h:app.Shop.inl -> src/shop.cpp:Item.use",
        "src/shop.cpp:app.Shop.Shop -> include/base.hpp:Base.run",
        "src/shop.cpp:app.Shop.sell -> include/shop.h:app.Shop.inl",
        "src/shop.cpp:app.Shop.sell -> src/shop.cpp:Item.use",
        "src/shop.cpp:main -> src/shop.cpp:app.Shop.sell",
        "src/shop.cpp:main -> src/c.c:c_func",
        "src/c.c:c_func -> src/c.c:local",
    }
    assert sources.edges("inherits") == {"include/shop.h:app.Shop -> include/base.hpp:Base"}
    assert sources.edges("imports") == {
        "include/shop.h -> include/base.hpp",
        "src/shop.cpp -> include/shop.h",
        "src/c.c -> include/shop.h",
    }
    assert "printf" in sources.unresolved("calls")
    assert "src/shop.cpp:Item.use -> include/shop.h:MAX_ITEMS" in sources.edges("uses")
