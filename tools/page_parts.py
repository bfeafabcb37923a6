"""Parts of pages that are made: each stands between two comments, and what is around them is written by hand."""


def with_part(page: str, begin: str, end: str, made: str) -> str:
    """The page with what was made between these two lines. Raises ValueError where one of them is missing."""
    before, after_begin, rest = page.partition(begin)
    _, before_end, after = rest.partition(end)
    if not after_begin or not before_end:
        raise ValueError(f"the page lacks {begin!r} or {end!r} behind it")
    return f"{before}{begin}\n{made}\n{end}{after}"
