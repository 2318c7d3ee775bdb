"""The texts the pictures show."""

from __future__ import annotations

from ragforge_tui.shared.requests.work import FileDiff
from tests.support.chat_scene import DIFF

MADE = "--- /dev/null\n+++ b/notes/retry.md\n@@ -0,0 +1,2 @@\n+# Retry\n+One uuid for all tries.\n"
DIFFS = [
    FileDiff(path="graph/store.py", diff=DIFF),
    FileDiff(path="notes/retry.md", diff=MADE, note="somebody else changed it since"),
]
PARAGRAPH = """The index is allocated **inside** the transaction, and the transaction is retried \
as long as the constraint fires:

- `append_turn` makes a uuid
- the driver runs the work again
  - with a new uuid
  - and so with a new tu"""
MARKDOWN = """# Heading of the first level

Text with **bold**, *italic*, ~~struck~~, `code`, a [link](https://example.org/a/page) and https://example.org. \
A line that is longer than the measure goes on in the next one, where it begins at the same column again.

## Second level

1. one
2. two, with a list in it
   - [x] done
   - [ ] to do, in a line that is so long that it has to go on in another line, indented as the first
3. three

### Third level

> A quote, *of somebody*.
>
> > And what they quoted.

| way | round trips | risk |
|---|---:|:---:|
| before | 1 | none |
| look up | 2 | a **race** between two writers |

```python
async def work(tx: Transaction) -> None:
    uuid = uuid4().hex  # a new one on every retry
    await tx.run("MERGE (t:Turn {uuid: $uuid})", uuid=uuid)
```

```
no language: as it is
```

---

Inline maths $e^{i\\pi} + 1 = 0$, and a block:

$$
\\sum_{n=1}^{\\infty} \\frac{1}{n^2} = \\frac{\\pi^2}{6}
$$

日本語と한국어 and 👩‍👩‍👧 in one line, and שלום from right to left.
"""
CROOKED = (
    "<night id=lamp⛧ name=\"Vega\" color='#ffb000' glyph=☾>\n  <trigger>dusk\n  <soul>a < b & c</sole>\n</night>\n"
)
IMPROVED = "<luciform name='Vega' color='orange' glyph='☾'>\n  Far better ✶\n</luciform>\n"
