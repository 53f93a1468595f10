#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A second, small reader of bundles, written from the text of src/runtime/bundle.h and src/engine/plan_file.h alone.

    read_bundle.py FILE...        prints what it holds as JSON, one object a file; exit 1 where a file is not a whole bundle
"""
import argparse
import hashlib
import json
import struct
import sys

MAGIC = b"\x89OCTET\r\n"


class Broken(Exception):
    pass


def need(condition, what):
    if not condition:
        raise Broken(what)


class Cursor:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, form):
        size = struct.calcsize("<" + form)
        need(self.at + size <= len(self.data), "ends early")
        values = struct.unpack_from("<" + form, self.data, self.at)
        self.at += size
        return values[0] if len(values) == 1 else list(values)

    def text(self):
        length = self.take("I")
        need(length <= 4096 and self.at + length <= len(self.data), "text too long")
        raw = self.data[self.at:self.at + length]
        need(b"\0" not in raw, "zero byte in a text")
        self.at += length
        return raw.decode("utf-8", "replace")

    def shape(self):
        rank = self.take("B")
        need(rank <= 4, "rank")
        return [self.take("q") for _ in range(rank)]

    def form(self):
        bits = self.take("B")
        need(bits <= 15, "bits of a form")
        form = {"granularity": bits & 3, "held_wide": bool(bits & 4), "scale": self.take("f"), "scales": self.take("i")}
        form["factors"], form["block"], form["zero_point"], form["scale_rule"] = -1, 0, 0, 0
        if bits & 8:
            form["factors"], form["block"] = self.take("i"), self.take("i")
            form["zero_point"], form["scale_rule"] = self.take("B"), self.take("B")
            need(form["scale_rule"] <= 1, "scale rule")
        return form


def read_plan(data):
    c = Cursor(data)
    plan = {"backend": c.text(), "batch": c.take("q"), "input": c.take("i")}
    plan["outputs"] = [c.take("i") for _ in range(c.take("I"))]
    plan["tensors"] = []
    for _ in range(c.take("I")):
        t = {"name": c.text(), "shape": c.shape(), "format": c.text()}
        t.update(c.form())
        t["channel_stride"] = c.take("i")
        t["offset"], t["size"], t["first"], t["last"], t["is_output"] = c.take("Q"), c.take("Q"), c.take("i"), c.take("i"), c.take("B")
        plan["tensors"].append(t)
    plan["steps"] = []
    for _ in range(c.take("I")):
        s = {"op": c.text(), "name": c.text(), "tactic": c.text()}
        s["stride"], s["pad"], s["groups"], s["activation"] = c.take("ii"), c.take("iiii"), c.take("i"), c.take("B")
        s["epsilon"], s["heads"], s["scale"] = c.take("d"), c.take("i"), c.take("d")
        s["start"], s["length"], s["shape"] = c.take("q"), c.take("q"), c.shape()
        s["bias"], bits = c.take("B"), c.take("B")
        need(s["bias"] <= 1 and bits <= 7, "bits of a step")
        s["residual"] = bits & 1
        s["probabilities"] = c.text() if bits & 4 else "fp32"
        count = c.take("I")
        need(1 <= count <= 8, "inputs")
        s["inputs"] = [c.take("Bi") for _ in range(count)]
        s["output"] = c.take("i")
        s["second"] = c.take("i") if bits & 2 else None
        s["operations"], s["bytes"] = c.take("Q"), c.take("Q")
        plan["steps"].append(s)
    plan["arena"] = c.take("Q")
    need(c.at == len(data), "bytes after the plan")
    return plan


def read_weights(data):
    c = Cursor(data)
    table = c.take("Q")
    end = c.at + table
    constants = []
    for _ in range(c.take("I")):
        constant = {"name": c.text(), "shape": c.shape(), "format": c.text()}
        if constant["format"] != "fp32":
            constant.update(c.form())
        constant["bytes"] = c.take("Q")
        constants.append(constant)
    need(c.at == end, "length of the table of weights")
    at = -(-end // 64) * 64
    need(not any(data[end:at]), "padding")
    for constant in constants:
        stop = at + constant["bytes"]
        need(stop <= len(data), "weights end early")
        constant["sha256"] = hashlib.sha256(data[at:stop]).hexdigest()
        at = -(-stop // 64) * 64
        need(not any(data[stop:at]), "padding")
    need(at == len(data), "bytes after the weights")
    return constants


def read_bundle(data):
    need(len(data) >= 64 + 128 + 128, "too short")
    need(data[:8] == MAGIC, "magic")
    version = struct.unpack_from("<I", data, 8)[0]
    need(version == 1, f"version {version}")
    need(not any(data[12:64]), "header")
    footer = data[-128:]
    need(hashlib.sha256(data[:64] + footer[:96]).digest() == footer[96:], "footer")
    directory, count, zero, size, zeros = struct.unpack_from("<QIIQQ", footer)
    need(zero == 0 and zeros == 0 and size == len(data), "footer's numbers")
    need(1 <= count <= 1024 and directory % 64 == 0 and directory + count * 128 + 128 == size, "directory's place")
    entries = data[directory:directory + count * 128]
    need(hashlib.sha256(entries).digest() == footer[32:64], "directory")
    out = {"version": version, "identity": footer[64:96].hex(), "sections": []}
    identity, at = hashlib.sha256(), 64
    for i in range(count):
        entry = entries[i * 128:(i + 1) * 128]
        kind, name = entry[:16].rstrip(b"\0").decode(), entry[16:48].rstrip(b"\0").decode()
        offset, size = struct.unpack_from("<QQ", entry, 48)
        flags = struct.unpack_from("<I", entry, 96)[0]
        need(offset == at and flags <= 3 and not any(entry[100:]), f"entry of {kind}")
        body = data[offset:offset + size]
        need(len(body) == size and hashlib.sha256(body).digest() == entry[64:96], f"section {kind} {name}")
        at = -(-(offset + size) // 64) * 64
        need(not any(data[offset + size:at]), "bytes between sections")
        if flags & 1:
            identity.update(entry[:48] + entry[64:96])
        section = {"kind": kind, "name": name, "size": size, "flags": flags, "sha256": entry[64:96].hex()}
        if kind == "plan":
            section["contents"] = read_plan(body)
        elif kind == "weights":
            section["contents"] = read_weights(body)
        elif kind in ("model", "labels", "provenance"):
            section["contents"] = json.loads(body)
        out["sections"].append(section)
    need(at == directory, "bytes before the directory")
    need(identity.digest() == footer[64:96], "identity")
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", metavar="FILE")
    code = 0
    for path in parser.parse_args().files:
        try:
            with open(path, "rb") as file:
                print(json.dumps({"file": path, **read_bundle(file.read())}))
        except (Broken, OSError, ValueError, struct.error) as error:
            print(f"{path}: {error}", file=sys.stderr)
            code = 1
    sys.exit(code)


if __name__ == "__main__":
    main()
