"""A plan as Markdown, such as for the comment of a pull request. Programs colour the lines of a ``diff`` block.

### example.com (Z0123456789ABCDEFGHIJ)

```diff
+ web.prod.example.com A 10.0.0.1 ttl 30  (prod/shop/web appeared)
- api.prod.example.com A 10.0.0.2 ttl 30
+ api.prod.example.com A 10.0.0.2 ttl 600  (prod/shop/api changed)
# www.prod.example.com A 10.0.0.3 ttl 30  (stays as it is: ...)
```

**1 to add, 1 to change, 0 to delete, 0 held back**
"""

from collections.abc import Iterator, Sequence

from kubesync_local.plans.plan import TTL, Line, Plan, Sign
from kubesync_local.terminal.escaping import visible


def markdown_of(plan: Plan) -> str:
    """The whole plan."""
    blocks: list[str] = []
    for group in plan.groups:
        lines = [text for line in group.lines for text in _lines(line)]
        if group.left_out:
            lines.append(f"# ... and {group.left_out:,} more")
        blocks.append(f"### {_plain(group.title)}\n\n```diff\n" + "\n".join(lines) + "\n```")
    blocks += [f"- {_plain(text)}" for text in (*plan.notes, *plan.exposes, *plan.errors)]
    return "\n\n".join([*blocks, f"**{_plain(plan.last_line)}**"]) + "\n"


def _lines(line: Line) -> Iterator[str]:
    subject, why = _plain(line.subject), f"  ({_plain(line.why)})" if line.why else ""
    match line.sign:
        case Sign.ADD:
            yield f"+ {_row(subject, line.after)}{why}"
        case Sign.DELETE:
            yield f"- {_row(subject, line.before)}{why}"
        case Sign.CHANGE:
            yield f"- {_row(subject, line.before)}"
            yield f"+ {_row(subject, line.after)}{why}"
        case _:
            yield f"# {_row(subject, line.after or line.before)}{why}"


def _row(subject: str, side: Sequence[str] | None) -> str:
    if not side:
        return subject
    begin = next((number for number, part in enumerate(side) if part.startswith(TTL)), len(side))
    return " ".join([subject, _plain(", ".join(side[:begin])), *map(_plain, side[begin:])])


def _plain(text: str) -> str:
    """On one line, and without what would end the block."""
    return " ".join(visible(text).replace("```", "'''").split())
