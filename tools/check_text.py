#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the text of the tree clean.

    tools/check_text.py [FILE...]      every file git tracks, or those named
    tools/check_text.py --selftest     planted faults, each of which must be found

Errors: trailing blanks, CRLF, tabs in code, conflict markers, no newline at the end, bytes that are not UTF-8, invisible and
bidirectional characters, folders of someone's machine, a source without its SPDX line, Markdown tables of uneven rows and
fences left open. Warnings: files over 600 lines. Exit status 0 no errors, 3 some, 2 usage.
"""
import os
import re
import subprocess
import sys
import tempfile

CODE = (".c", ".h", ".def", ".inc", ".cu", ".cuh")
SOURCES = CODE + (".py", ".sh", ".cmake", ".map", ".in", ".yaml", ".yml", "CMakeLists.txt", "Makefile", ".ci/run")
# Written by programs or meant to be strange, kept to the byte: checked for nothing but the machine's folders.
DATA_FOLDERS = ("tests/fuzz/corpus/", "tests/golden/")
DATA = (".json", ".jsonl", ".stdout", ".stderr", ".csv", ".svg", "classes.txt", "labels.txt")
WORDS_OF_OTHERS = ("LICENSE",)
LONGEST = 600

# Zero-width and joining marks, soft hyphen, line and paragraph separators, direction marks and overrides, the byte order
# mark, interlinear marks, tags, and the C0/C1 controls.
HIDDEN = re.compile("[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202f\u205f-\u206f\u3164\ufe00-\ufe0f"
                    "\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
MACHINE = re.compile(r"(?<![\w.$}>*])/(?:(?:home|Users|work)/\w|root(?:/|\b(?!\s*\{)))")
CONFLICT = re.compile(r"(?:<{7}|>{7}|\|{7})(?: |$)|={7}$")
DELIMITER = re.compile(r" {0,3}\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$")
FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)$")


def cells(line):
    """How many cells a row of a Markdown table has; an escaped bar is text."""
    row = re.sub(r"\\.", "xx", line.strip())
    row = row[1:] if row.startswith("|") else row
    row = row[:-1] if row.endswith("|") else row
    return row.count("|") + 1


def check_markdown(lines, say):
    fence, opened, columns = None, 0, 0
    for number, line in enumerate(lines, 1):
        match = FENCE.match(line)
        if fence:
            if match and match[1][0] == fence[0] and len(match[1]) >= len(fence) and not match[2].strip():
                fence = None
            continue
        if match and not (match[1][0] == "`" and "`" in match[2]):
            fence, opened, columns = match[1], number, 0
            continue
        if columns:
            if not line.strip() or line.startswith("    "):
                columns = 0
            elif cells(line) != columns:
                say(number, f"a table row of {cells(line)} cells where the table has {columns}")
            continue
        before = lines[number - 2] if number > 1 else ""
        if "|" in before and "-" in line and DELIMITER.match(line) and not before.startswith("    "):
            columns = cells(line)
            if cells(before) != columns:
                say(number - 1, f"a table head of {cells(before)} cells over {columns} columns")
    if fence:
        say(opened, "a code fence that is never closed")


def check_file(path, data):
    """(errors, warnings) of one file."""
    errors, warnings = [], []

    def say(number, what):
        errors.append(f"{path}:{number}: {what}")

    if b"\0" in data[:8192]:
        return errors, warnings  # not text
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        if path.startswith(DATA_FOLDERS):
            return errors, warnings
        return [f"{path}:{data.count(10, 0, error.start) + 1}: not UTF-8"], warnings
    lines = text.split("\n")
    is_data = path.endswith(DATA) or (path.startswith(DATA_FOLDERS) and not path.endswith(".md"))
    for number, line in enumerate(lines, 1):
        if MACHINE.search(line):
            say(number, f"a folder of someone's machine: {MACHINE.search(line)[0]}")
        if is_data:
            continue
        if line.endswith("\r"):
            say(number, "CRLF")
        elif line != line.rstrip():
            say(number, "trailing blanks")
        if "\t" in line and path.endswith(CODE):
            say(number, "a tab")
        if CONFLICT.match(line.rstrip("\r")) and not (line.startswith("===") and path.endswith(WORDS_OF_OTHERS)):
            say(number, "a conflict marker")
        hidden = HIDDEN.search(line.rstrip("\r"))
        if hidden:
            say(number, f"an invisible character, U+{ord(hidden[0]):04X}")
    if text and not text.endswith("\n") and not is_data:
        say(len(lines), "no newline at the end")
    if text.endswith("\n\n") and not is_data:
        say(len(lines) - 1, "empty lines at the end")
    if text and not is_data and path.endswith(SOURCES) and not any("SPDX-License-Identifier: Apache-2.0" in line for line in lines[:5]):
        say(1, "no SPDX-License-Identifier line at its head")
    if path.endswith(".md"):
        check_markdown(lines, say)
    if len(lines) - 1 > LONGEST and not is_data and not path.endswith(WORDS_OF_OTHERS):
        warnings.append(f"{path}: warning: {len(lines) - 1} lines, over {LONGEST}")
    return errors, warnings


def tracked(root):
    """What git tracks; without git (a release's archive), every file outside build folders and hidden ones."""
    git = subprocess.run(["git", "-C", root, "ls-files", "-z"], capture_output=True)
    if git.returncode == 0:
        return [os.fsdecode(name) for name in git.stdout.split(b"\0") if name]
    found = []
    for place, folders, names in os.walk(root):
        folders[:] = sorted(f for f in folders if not f.startswith((".", "build")))
        found += [os.path.relpath(os.path.join(place, name), root) for name in sorted(names)]
    return found


def check_files(root, paths):
    errors, warnings = [], []
    for path in paths:
        full = os.path.join(root, path)
        if os.path.islink(full) or not os.path.isfile(full):
            continue
        with open(full, "rb") as file:
            some_errors, some_warnings = check_file(path, file.read())
        errors += some_errors
        warnings += some_warnings
    return errors, warnings


# ---- self-test ----------------------------------------------------------------------------------------------------------

SPDX = "/* SPDX-License-Identifier: Apache-2.0 */\n"
MD = "<!-- SPDX-License-Identifier: Apache-2.0 -->\n"
SOUND = [
    ("a.c", SPDX + "int main(void);\n"), ("b.py", "#!/x\n# SPDX-License-Identifier: Apache-2.0\nx = 'é →'\n"),
    ("Makefile", "# SPDX-License-Identifier: Apache-2.0\nall:\n\ttrue\n"), ("x.npy", "\0\t \r"), ("a.stdout", "x \n\n"),
    ("tests/fuzz/corpus/x/a.yaml", "a: \r\n\t"),
    ("c.md", MD + "| a | b |\n|---|---|\n| `x \\| y` | 2 |\n\n    | not | a | table\n\n```c\n| a |\n|---|---|\n```\n"),
    ("d.md", MD + "a | b\n--|--\n1 | 2\n\nTitle\n=====\n\nSetext | not a table\n"),
    ("e.md", MD + "/rooted /homeless a/home/x ${x}/root and /srv alone\n"), ("empty.c", ""), ("LICENSE", "=======\n"),
]
PLANTED = [
    ("a.c", SPDX + "int a; \n", "a.c:2: trailing blanks"), ("a.c", SPDX + "int a;\r\n", "a.c:2: CRLF"),
    ("a.h", SPDX + "\tint a;\n", "a.h:2: a tab"), ("a.c", SPDX + "<" * 7 + " HEAD\n", "a.c:2: a conflict marker"),
    ("a.c", SPDX + "=" * 7 + "\n", "a.c:2: a conflict marker"), ("a.c", SPDX + ">" * 7 + " x\n", "a.c:2: a conflict marker"),
    ("a.c", SPDX + "int a;", "a.c:2: no newline"), ("a.c", SPDX + "\n\n", "a.c:3: empty lines"),
    ("a.c", SPDX + "int a\u200b;\n", "U+200B"), ("a.c", SPDX + "/* \u202e */\n", "U+202E"), ("a.c", "\ufeff" + SPDX, "U+FEFF"),
    ("a.c", SPDX + "\x1b[0m\n", "U+001B"), ("a.c", SPDX + "\u00a0\n", "trailing blanks"),
    ("a.c", SPDX + '"/' + 'home/x/y"\n', "a.c:2: a folder"), ("a.md", MD + "cd /" + "root/octet\n", "a.md:2: a folder"),
    ("a.json", '{"x": "/' + 'Users/me"}\n', "a.json:1: a folder"), ("a.sh", "# SPDX\ncd /" + "work/x\n", "a.sh:2: a folder"),
    ("a.md", MD + "in /" + "root\n", "a.md:2: a folder"),
    ("a.c", "int a;\n", "a.c:1: no SPDX"), ("x/CMakeLists.txt", "project(x)\n", "x/CMakeLists.txt:1: no SPDX"),
    ("a.c", SPDX.encode() + b"\xff\n", "a.c:2: not UTF-8"),
    ("a.md", MD + "| a | b |\n|---|---|\n| 1 |\n", "a.md:4: a table row of 1 cells"),
    ("a.md", MD + "| a | b |\n|---|---|\n| `x|y` | 2 |\n", "a.md:4: a table row of 3 cells"),
    ("a.md", MD + "| a |\n|---|---|\n", "a.md:2: a table head of 1 cells"),
    ("a.md", MD + "text\n\n```sh\nmake\n", "a.md:4: a code fence"), ("a.md", MD + "````\n```\n", "a.md:2: a code fence"),
    ("a.c", SPDX + "int a;\n" * LONGEST, "warning: 601 lines"),
]


def selftest():
    failures = []
    with tempfile.TemporaryDirectory() as root:
        for path, text, words in [(p, t, None) for p, t in SOUND] + PLANTED:
            full = os.path.join(root, path)
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, "wb") as file:
                file.write(text if isinstance(text, bytes) else text.encode())
            errors, warnings = check_files(root, [path])
            if words is None and errors + warnings:
                failures.append(f"sound text is refused: {errors + warnings}")
            if words is not None and not any(words in e for e in errors + warnings):
                failures.append(f"not found: {words!r} in {path}; said: {errors + warnings}")
    for failure in failures:
        print(failure)
    print(f"check_text: {len(PLANTED)} planted faults, {len(failures)} failures")
    return bool(failures)


def main(arguments):
    if arguments == ["--selftest"]:
        return 1 if selftest() else 0
    if any(a.startswith("-") for a in arguments):
        print(__doc__.strip(), file=sys.stderr)
        return 2
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    errors, warnings = check_files(os.getcwd() if arguments else root, arguments or tracked(root))
    for line in warnings + errors:
        print(line)
    print(f"check_text: {len(errors)} errors" if errors else "check_text: ok")
    return 3 if errors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
