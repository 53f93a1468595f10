# SPDX-License-Identifier: Apache-2.0
"""Random annotations and detections, and pycocotools' 12 figures of them, as lines:

    set NAME PICTURES
    t PICTURE LABEL CROWD ID_IS_ZERO x y width height area      pictures in order of their COCO ids
    d PICTURE LABEL x y width height score
    s AP AP50 AP75 small medium large AR1 AR10 AR100 small medium large

    coco_ap.py                      tests/golden/coco/sets.txt, small sets of every kind
    coco_ap.py --sets 5000 --to F   many more, for once
"""
import contextlib
import copy
import io
import pathlib
import random
import sys

from common import GOLDEN, arguments
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval


def figures(truth, found):
    with contextlib.redirect_stdout(io.StringIO()):
        G = COCO()
        G.dataset = copy.deepcopy(truth)
        G.createIndex()
        D = G.loadRes(copy.deepcopy(found))
        E = COCOeval(G, D, "bbox")
        E.evaluate()
        E.accumulate()
        E.summarize()
    return [float(v) for v in E.stats]


def number(v, r, coarse):
    return float(round(v)) if coarse else round(v, r)


def draw(seed):
    """A set: sizes, crowds, ties, odd areas and an annotation with id 0 come and go with the seed."""
    r = random.Random(seed)
    pictures = r.choice((1, 2, 3, 5, 8))
    labels = r.choice((1, 1, 2, 3, 6))
    coarse = r.random() < 0.5                       # whole pixels: equal overlaps
    levels = r.choice((1, 2, 5, 0, 0))              # scores: so many values; 0: any
    crowds = r.choice((0, 0, 0.1, 0.5, 1))
    drift = r.choice((0, 1, 4, 20))
    size = r.choice((20, 40, 100, 300))
    most = r.choice((0, 1, 3, 8, 8, 20))
    ids = sorted(r.sample(range(1000), pictures))
    truths, found = [], []
    for p in range(pictures):
        for _ in range(r.randint(0, most)):
            w, h = (number(r.uniform(1, size) ** r.choice((1, 1, 0.5)), 2, coarse) for _ in "wh")
            box = [number(r.uniform(0, 200), 2, coarse), number(r.uniform(0, 200), 2, coarse), w, h]
            area = r.choice((w * h, w * h, w * h * 0.6, 1024.0, 9216.0))
            truths.append(dict(p=p, c=r.randrange(labels), box=box, area=area, crowd=int(r.random() < crowds)))
    def score():
        return r.randrange(levels) / levels if levels else round(r.random(), 4)
    for t in truths:
        for _ in range(r.choice((0, 1, 1, 1, 2, 3))):
            box = [number(max(v + r.uniform(-drift, drift), 0.5), 2, coarse) for v in t["box"]]
            found.append((t["p"], t["c"] if r.random() < 0.9 else r.randrange(labels + 1), box, score()))
    for _ in range(r.choice((0, 0, 3, 30))):
        found.append((r.randrange(pictures), r.randrange(labels + 1), [number(r.uniform(1, 150), 2, coarse) for _ in range(4)], score()))
    if r.random() < 0.03 and truths:                # above the limit of 100
        t = truths[0]
        found += [(t["p"], t["c"], [v + r.uniform(0, 9) for v in t["box"]], score()) for _ in range(130)]
    r.shuffle(found)
    if not found:
        found.append((0, labels, [1.0, 1.0, 2.0, 2.0], 0.5))   # pycocotools cannot load none; this counts nowhere
    order = list(range(len(truths)))
    r.shuffle(order)
    first = 0 if r.random() < 0.15 else 1
    return pictures, ids, labels, [truths[k] for k in order], found, first


def write(out, name, pictures, ids, labels, truths, found, first):
    truth = {"images": [{"id": i, "width": 400, "height": 400} for i in ids], "categories": [{"id": c + 1, "name": str(c)} for c in range(labels)],
             "annotations": [{"id": first + k, "image_id": ids[t["p"]], "category_id": t["c"] + 1, "bbox": t["box"], "area": t["area"],
                              "iscrowd": t["crowd"]} for k, t in enumerate(truths)]}
    stats = figures(truth, [{"image_id": ids[p], "category_id": c + 1, "bbox": b, "score": s} for p, c, b, s in found])
    print("set", name, pictures, file=out)
    for k, t in enumerate(truths):
        print("t", t["p"], t["c"], t["crowd"], int(first + k == 0), *map(repr, t["box"]), repr(t["area"]), file=out)
    for p, c, b, s in found:
        print("d", p, c, *map(repr, b), repr(s), file=out)
    print("s", *(f"{v:.12g}" for v in stats), file=out)


def main():
    a = arguments(__doc__, sets=dict(type=int, default=120), first=dict(type=int, default=0), to=dict(type=pathlib.Path)).parse_args()
    path = a.to or GOLDEN / "coco" / "sets.txt"
    path.parent.mkdir(exist_ok=True)
    with open(path, "w", encoding="utf-8") as out:
        for seed in range(a.first, a.first + a.sets):
            write(out, f"drawn-{seed}", *draw(seed))
    print(path, path.stat().st_size, "bytes", file=sys.stderr)


if __name__ == "__main__":
    main()
