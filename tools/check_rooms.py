#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the rooms apart, by the table docs/rooms.txt.

    tools/check_rooms.py                          every #include and CMake link of the tree
    tools/check_rooms.py --archives ROOM=FILE...  every symbol that one room's archive takes from another's
    tools/check_rooms.py --selftest               planted violations, each of which must be found

Names file:line of each violation; exit status 0 none, 3 some, 2 usage.
"""
import os
import re
import subprocess
import sys
import tempfile

CODE = (".c", ".h", ".def", ".inc", ".cu", ".cuh")
TABLE = "docs/rooms.txt"
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"\n]+)"|<(octet/[^>\n]+)>)', re.M)


class Table:
    """What docs/rooms.txt says."""

    def __init__(self, text, problems):
        self.sees = {}  # room -> rooms
        self.only = {}  # (room, header) -> files that may include it
        for number, line in enumerate(text.splitlines(), 1):
            line = line.split("#")[0].strip()
            if not line:
                continue
            match = re.fullmatch(r"(\w+)\s*:(.*)", line)
            if not match:
                problems.append(f"{TABLE}:{number}: expected 'ROOM: ROOM...', found '{line}'")
                continue
            room, rest = match[1], match[2].split()
            self.sees.setdefault(room, set())
            if "by" in rest:
                cut = rest.index("by")
                for header in rest[:cut]:
                    self.only[room, header] = set(rest[cut + 1:])
            else:
                self.sees[room] |= set(rest)
        for room, others in self.sees.items():
            for other in sorted(others - set(self.sees)):
                problems.append(f"{TABLE}: {room} may see {other}, which has no line of its own")
        problems += [f"{TABLE}: a cycle of rooms: {' -> '.join(c)}" for c in cycles(self.sees)]

    def allows(self, room, other, header=None, source=None):
        if other == room or other in self.sees.get(room, ()):
            return True
        return header is not None and source in self.only.get((room, header), ())

    def links(self, room, other):
        """May an archive of `room` need `other`'s? A header that only some files see still means a link."""
        return self.allows(room, other) or any(
            r == room and header.split("/")[0] == other for r, header in self.only)


def cycles(edges):
    """One cycle for each place where the rooms come back to themselves."""
    found, done = [], set()

    def visit(room, path):
        if room in path:
            found.append(path[path.index(room):] + [room])
        elif room not in done:
            for other in sorted(edges.get(room, ())):
                visit(other, path + [room])
            done.add(room)

    for room in sorted(edges):
        visit(room, [])
    return found


def blank_comments(text, strings=False):
    """The text without its comments (and, if asked, its strings), lines and columns kept."""
    pattern = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)

    def blank(match):
        piece = match[0]
        return re.sub(r"[^\n]", " ", piece) if strings or piece[0] == "/" else piece

    return pattern.sub(blank, text)


def line_of(text, position):
    return text.count("\n", 0, position) + 1


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
        return file.read()


def code_files(root, folder):
    for place, folders, names in os.walk(os.path.join(root, folder)):
        folders.sort()
        for name in sorted(names):
            if name.endswith(CODE):
                yield os.path.relpath(os.path.join(place, name), root)


def room_of(path):
    """(room, family or None) of a file of the tree; (None, None) where files are in no room."""
    parts = path.split("/")
    if parts[0] == "src" and len(parts) > 2:
        return parts[1], None
    if parts[0] == "families" and len(parts) > 2:
        return "families", parts[1]
    if path == "include/octet/status.h":
        return "status", None
    if parts[:2] == ["include", "octet"]:
        return "api", None
    if parts[0] == "examples":
        return "examples", None
    return None, None


def resolve(root, source, name):
    """The included file within the tree, or None for one that is outside it."""
    for base in (os.path.dirname(source), "src", "include", ""):
        path = os.path.normpath(os.path.join(base, name))
        if os.path.isfile(os.path.join(root, path)):
            return path
    parts = os.path.normpath(name).split("/")
    if os.path.isdir(os.path.join(root, "src", parts[0])) and len(parts) > 1:
        return "src/" + "/".join(parts)
    return None


def check_includes(root, table, problems):
    seen = {}
    for folder in ("src", "families", "include", "examples"):
        for source in code_files(root, folder):
            room, family = room_of(source)
            if room is None:
                continue
            text = blank_comments(read(root, source))
            for match in INCLUDE.finditer(text):
                target = resolve(root, source, match[1] or match[2])
                other, other_family = room_of(target) if target else (None, None)
                if other is None:
                    continue
                place = f"{source}:{line_of(text, match.start())}"
                header = target.removeprefix("src/")
                if room == "examples":
                    if other not in ("examples", "api", "status"):
                        problems.append(f"{place}: an example includes {header}; it may see include/octet only")
                    continue
                if room not in table.sees:
                    problems.append(f"{place}: room {room} has no line in {TABLE}")
                elif other == room == "families" and family != other_family:
                    problems.append(f"{place}: family {family} includes family {other_family}'s {header}")
                elif not table.allows(room, other, header, source.removeprefix("src/")):
                    allowed = " ".join(sorted(table.sees[room])) or "nothing"
                    problems.append(f"{place}: room {room} includes {header} of room {other}; it may see: {allowed}")
                if other != room:
                    seen.setdefault(room, set()).add(other)
    problems += [f"includes make a cycle of rooms: {' -> '.join(c)}" for c in cycles(seen)]


def check_links(root, table, problems):
    files = ["CMakeLists.txt"]
    for folder in ("cmake", "src", "families"):
        for place, folders, names in os.walk(os.path.join(root, folder)):
            folders.sort()
            files += [os.path.relpath(os.path.join(place, n), root) for n in sorted(names)
                      if n.endswith(".cmake") or n == "CMakeLists.txt"]
    for path in files:
        if not os.path.isfile(os.path.join(root, path)):
            continue
        text = re.sub(r"#[^\n]*", lambda m: " " * len(m[0]), read(root, path))
        for match in re.finditer(r"\b(oct_room|oct_client_room|oct_families|target_link_libraries)\s*\(([^()]*)\)", text):
            words = match[2].split()
            if match[1] == "target_link_libraries":
                target = words[0] if words else ""
                room = target[5:] if target.startswith("room_") else {"octet_command": "cli"}.get(target)
                others = [w[5:] for w in words[1:] if w.startswith("room_")]
            else:
                room = "families" if match[1] == "oct_families" or not words else words.pop(0)
                others, keep = [], False
                for word in words:
                    keep = word == "ROOMS" or (keep and word != "LIBRARIES")
                    if keep and word != "ROOMS":
                        others.append(word)
            for other in others if room else ():
                if "$" not in room + other and not table.links(room, other):
                    problems.append(f"{path}:{line_of(text, match.start())}: room {room} links room {other}, "
                                    f"which {TABLE} does not allow")


def family_names(root):
    folder = os.path.join(root, "families")
    if not os.path.isdir(folder):
        return []
    return sorted(n for n in os.listdir(folder) if os.path.isdir(os.path.join(folder, n)))


def names_family(text, family):
    """Where `family` stands as a word, or as a word of an identifier: vit in "vit_tiny" and VitModel, not in activity."""
    word = re.escape(family)
    camel = re.escape(family[0].upper() + family[1:])
    pattern = rf"(?<![A-Za-z])(?i:{word})(?![A-Za-z])|(?<![A-Z]){camel}(?=[A-Z])|(?<=[a-z]){camel}(?![a-z])"
    return re.finditer(pattern, text)


def check_names(root, problems):
    families = family_names(root)
    for folder in ("src", "include", "families"):
        for source in code_files(root, folder):
            own = room_of(source)[1]
            # A family's strings are names in its checkpoints, which may hold another's word ("vit.encoder" in YOLOS).
            text = blank_comments(read(root, source), strings=own is not None)
            for family in families:
                if family == own:
                    continue
                where = f"family {own} names family {family}" if own else f"a shared room names family {family}"
                lines = {line_of(text, match.start()) for match in names_family(text, family)}
                problems += [f"{source}:{line}: {where}" for line in sorted(lines)]


def check_tree(root):
    problems = []
    table = Table(read(root, TABLE), problems)
    check_includes(root, table, problems)
    check_links(root, table, problems)
    check_names(root, problems)
    return problems


def symbols(archive):
    """(defined, wanted) global symbols of an archive; wanted: symbol -> the object that wants it."""
    text = subprocess.run(["nm", "-A", "-P", "-g", archive], check=True, capture_output=True, text=True).stdout
    defined, wanted = set(), {}
    for line in text.splitlines():
        place, _, rest = line.partition(": ")
        fields = rest.split()
        if len(fields) < 2:
            continue
        if fields[1] in ("U", "w", "v"):
            wanted.setdefault(fields[0], place[place.rfind("[") + 1:].rstrip("]"))
        else:
            defined.add(fields[0])
    return defined, wanted


def check_archives(root, pairs):
    problems = []
    table = Table(read(root, TABLE), problems)
    rooms = {room: symbols(path) for room, path in pairs}
    home = {}
    for room, (defined, _) in rooms.items():
        for name in defined:
            if name.startswith(("oct_", "octet_")):
                if name in home:
                    problems.append(f"{name} is defined in room {home[name]} and in room {room}")
                home[name] = room
    for room, (defined, wanted) in rooms.items():
        for name, place in sorted(wanted.items()):
            other = home.get(name)
            if other and name not in defined and not table.links(room, other):
                problems.append(f"{place}: room {room} uses {name} of room {other}, which {TABLE} does not allow")
    return problems


# ---- self-test: each planted violation, and the words that must be said of it ------------------------------------------

SOUND = {
    TABLE: "status:\napi: status\nbase: status\ncheckpoint: base\ngraph: base\ngraph: checkpoint/checkpoint.h by graph/family.h\n"
           "engine: base graph\nfamilies: base checkpoint graph\nruntime: base graph engine families api\ncli: api\n",
    "CMakeLists.txt": "oct_room(base LIBRARIES m)\noct_room(graph ROOMS base checkpoint) # ROOMS engine\n"
                      "oct_families(ROOMS base graph)\n",
    "include/octet/octet.h": '#include "octet/status.h"\n/* such as vit */\n',
    "include/octet/status.h": "",
    "src/base/alloc.h": '#include "octet/status.h"\n',
    "src/checkpoint/checkpoint.h": '#include "base/alloc.h"\n',
    "src/graph/family.h": '#include "checkpoint/checkpoint.h"\n#include "graph/graph.h"\n',
    "src/graph/graph.h": '#include "base/alloc.h"\nint activity; /* vit needs it */ // vit\n',
    "src/engine/engine.c": '#include "graph/graph.h"\n#include <stdio.h>\n/* #include "cli/main.h" */\n',
    "src/runtime/run.c": '#include "engine/engine.h"\n#include "octet/octet.h"\n',
    "src/cli/main.c": '#include <octet/octet.h>\n#include "verbs.h"\n',
    "src/cli/verbs.h": "",
    "families/vit/family.c": '#include "graph/family.h"\nconst char *name = "vit_tiny";\n',
    "families/yolos/family.c": '#include "checkpoint/checkpoint.h"\n/* like vit, but */\nconst char *a = "vit.layernorm";\n',
}
PLANTED = [
    ("src/base/up.c", '\n#include "graph/graph.h"\n', "src/base/up.c:2: room base includes graph/graph.h"),
    ("src/base/up.c", '#  include "../graph/graph.h"\n', "src/base/up.c:1: room base includes graph/graph.h"),
    ("src/base/soon.c", '#include "engine/later.h"\n', "src/base/soon.c:1: room base includes engine/later.h"),
    ("src/graph/graph.c", '#include "checkpoint/checkpoint.h"\n', "src/graph/graph.c:1: room graph includes checkpoint"),
    ("src/cli/peek.c", '#include "base/alloc.h"\n', "src/cli/peek.c:1: room cli includes base/alloc.h"),
    ("src/engine/f.c", '#include "../../families/vit/family.c"\n', "src/engine/f.c:1: room engine includes families/vit"),
    ("src/newroom/x.c", '#include "base/alloc.h"\n', "src/newroom/x.c:1: room newroom has no line"),
    ("families/yolos/more.c", '#include "../vit/family.c"\n', "family yolos includes family vit's"),
    ("families/yolos/more.c", 'int a;\nint vit_layers;\n', "families/yolos/more.c:2: family yolos names family vit"),
    ("src/graph/kind.c", 'if (!strcmp(name, "vit_tiny"))\n', "src/graph/kind.c:1: a shared room names family vit"),
    ("src/graph/kind.c", "struct VitModel model;\n", "src/graph/kind.c:1: a shared room names family vit"),
    ("src/graph/kind.c", "int is_YOLOS;\n", "src/graph/kind.c:1: a shared room names family yolos"),
    ("src/graph/list.def", 'X("yolos")\n', "src/graph/list.def:1: a shared room names family yolos"),
    ("examples/a.c", '#include "base/alloc.h"\n', "examples/a.c:1: an example includes base/alloc.h"),
    ("CMakeLists.txt", "\noct_room(base ROOMS engine LIBRARIES m)\n", "CMakeLists.txt:2: room base links room engine"),
    ("CMakeLists.txt", "oct_families(ROOMS engine)\n", "CMakeLists.txt:1: room families links room engine"),
    ("cmake/x.cmake", "target_link_libraries(octet_command PRIVATE room_base)\n", "cmake/x.cmake:1: room cli links room base"),
    (TABLE, SOUND[TABLE] + "base: engine\n", "a cycle of rooms"),
    (TABLE, SOUND[TABLE] + "base graph\n", "expected 'ROOM: ROOM...'"),
    (TABLE, SOUND[TABLE] + "base: attic\n", "which has no line of its own"),
]


def plant(root, files):
    for path, text in files.items():
        full = os.path.join(root, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w", encoding="utf-8") as file:
            file.write(text)


def selftest():
    failures = []
    for path, text, words in [("src/base/fine.c", "", None)] + PLANTED:
        with tempfile.TemporaryDirectory() as root:
            plant(root, {**SOUND, path: text})
            problems = check_tree(root)
            if words is None and problems:
                failures.append(f"a sound tree is refused: {problems}")
            if words is not None and not any(words in p for p in problems):
                failures.append(f"not found: {words!r} in {path}: {text!r}; said: {problems}")
    for failure in failures:
        print(failure)
    print(f"check_rooms: {len(PLANTED)} planted violations, {len(failures)} failures")
    return bool(failures)


def main(arguments):
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    if arguments == ["--selftest"]:
        return 1 if selftest() else 0
    if arguments[:1] == ["--archives"] and all("=" in a for a in arguments[1:]):
        problems = check_archives(root, [a.split("=", 1) for a in arguments[1:]])
    elif not arguments:
        problems = check_tree(root)
    else:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    for problem in problems:
        print(problem)
    print(f"check_rooms: {len(problems)} violations of {TABLE}" if problems else "check_rooms: ok")
    return 3 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
