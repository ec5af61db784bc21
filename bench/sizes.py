"""Report the sizes of the house: files and functions, against the style's numbers.

Exits 1 where a file of `src` is over 400 lines or a function over 60: the style's limits for what
is worth keeping, with a little room for a long match.
"""

from __future__ import annotations

import ast
import statistics
import sys
from pathlib import Path

FILE_LIMIT = 400
FUNCTION_LIMIT = 60
SOURCE = Path(__file__).parent.parent / "src"


def functions(path: Path) -> list[tuple[str, int]]:
    """Return name and length in lines of every function of a file."""
    tree = ast.parse(path.read_text("utf-8"))
    found = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    return [(n.name, (n.end_lineno or n.lineno) - n.lineno + 1) for n in found]


def main() -> int:
    """Print the sizes and name what is over the limits."""
    files = {path: len(path.read_text("utf-8").splitlines()) for path in SOURCE.rglob("*.py")}
    lengths = [(path, *found) for path in files for found in functions(path)]
    long = [
        f"{path.relative_to(SOURCE)}: {size} lines"
        for path, size in files.items()
        if size > FILE_LIMIT
    ]
    long += [
        f"{path.relative_to(SOURCE)} {name}: {size} lines"
        for path, name, size in lengths
        if size > FUNCTION_LIMIT
    ]
    kept = [size for size in files.values() if size]
    sizes = sorted(size for _, _, size in lengths)
    print(
        f"{len(kept)} files, {sum(kept)} lines, median {statistics.median(kept):.0f}; "
        f"{len(sizes)} functions, median {statistics.median(sizes):.0f}, "
        f"95 % within {sizes[len(sizes) * 95 // 100]} lines"
    )
    for line in long:
        print(f"too long: {line}")
    return 1 if long else 0


if __name__ == "__main__":
    sys.exit(main())
