# SPDX-License-Identifier: Apache-2.0
"""Parameter lists of every architecture of the families, and outputs of the drawn ones (drawn_weights.md)."""
import hashlib
import json

import numpy as np

from common import arguments, formula_input, save, torch1, versions, write_json
from drawn import RULE, draw, fill

MOBILENETV2 = ("mobilenetv2_035", "mobilenetv2_050", "mobilenetv2_075", "mobilenetv2_100", "mobilenetv2_110d",
               "mobilenetv2_120d", "mobilenetv2_140")
VIT = ("vit_tiny_patch16_224", "vit_small_patch16_224", "vit_base_patch16_224", "vit_small_patch32_224",
       "vit_base_patch32_224")
VIT_LISTED = ("vit_tiny_patch16_384", "vit_small_patch16_384", "vit_small_patch32_384", "vit_base_patch16_384",
              "vit_base_patch32_384", "vit_small_patch8_224", "vit_base_patch8_224")
WIDTHS = {"tiny": (192, 3), "small": (384, 6), "base": (768, 12)}
# Published image sizes (rows, columns); the lists have 91 classes and 100 detection tokens.
YOLOS_SIZES = {"tiny": (800, 1333), "small": (512, 864), "base": (800, 1344)}
INPUTS = {"mobilenetv2": [(96, 96, 1), (97, 65, 2)], "vit": [(224, 224, 1), (224, 224, 2)],
          "yolos": [(128, 96, 1), (144, 80, 2), (131, 101, 3)]}


def lists(out, name, source, config, model):
    tensors = [{"name": k, "dtype": {"torch.float32": "F32", "torch.int64": "I64"}[str(v.dtype)], "shape": list(v.shape)}
               for k, v in model.state_dict().items()]
    with open(out / f"params_{name}.json", "w") as f:
        f.write('{"name": %s, "source": %s,\n"config": %s,\n"tensors": [\n' % tuple(map(json.dumps, (name, source, config))))
        f.write(",\n".join(json.dumps(t) for t in tensors) + "\n]}\n")
    digest = hashlib.sha256()
    elements = 0
    for t in tensors:
        a = draw(t["name"], tuple(t["shape"]))
        if a is not None:
            digest.update(a.astype("<f4").tobytes())
            elements += a.size
    print(name, len(tensors), "tensors", elements)
    return {"name": name, "tensors": sum(t["dtype"] == "F32" for t in tensors), "elements": elements,
            "sha256": digest.hexdigest()}


def timm_config(name, model):
    keep = ("input_size", "fixed_input_size", "interpolation", "crop_pct", "crop_mode", "mean", "std", "num_classes",
            "pool_size", "first_conv", "classifier")
    cfg = {k: model.pretrained_cfg[k] for k in keep if k in model.pretrained_cfg}
    cfg.setdefault("crop_mode", "center")
    return {"architecture": name, "num_classes": 1000, "num_features": model.num_features,
            "global_pool": getattr(model.global_pool, "pool_type", model.global_pool), "pretrained_cfg": cfg}


def outputs(torch, model, kind, pick):
    """The picked outputs of every input, float32, and how far the same weights in float64 are from them."""
    xs = [torch.from_numpy(formula_input(*i))[None] for i in INPUTS[kind]]
    single = [pick(model(x)) for x in xs]
    model.double()
    wide = [pick(model(x.double())) for x in xs]
    model.float()
    far = max(float(np.abs(s - w).max()) for a, b in zip(single, wide) for s, w in zip(a, b))
    return [np.stack([s[i] for s in single]).astype(np.float32) for i in range(len(single[0]))], far


def yolos_config(width, image, mid, labels, tokens, **more):
    hidden, heads = WIDTHS[width]
    return dict(architectures=["YolosForObjectDetection"], model_type="yolos", hidden_size=hidden, num_hidden_layers=12,
                num_attention_heads=heads, intermediate_size=4 * hidden, hidden_act="gelu", layer_norm_eps=1e-12,
                image_size=list(image), patch_size=16, num_channels=3, qkv_bias=True, num_detection_tokens=tokens,
                use_mid_position_embeddings=mid, id2label={str(i): f"class {i}" for i in range(labels)},
                label2id={f"class {i}": i for i in range(labels)}, hidden_dropout_prob=0.0,
                attention_probs_dropout_prob=0.0) | more


def make_yolos(config):
    import torch
    from transformers import YolosConfig, YolosForObjectDetection
    c = dict(config)
    c["id2label"] = {int(k): v for k, v in c["id2label"].items()}
    with torch.device("cpu"):
        return YolosForObjectDetection(YolosConfig(**c)).eval()


def main():
    a = arguments(__doc__).parse_args()
    torch = torch1()
    import timm
    (a.out / "drawn").mkdir(parents=True, exist_ok=True)
    v = versions("timm", "torch", "transformers")
    rows = []
    for name in MOBILENETV2 + VIT + VIT_LISTED:
        model = timm.create_model(name, pretrained=False, num_classes=1000).eval()
        row = lists(a.out, name, "timm " + v["timm"], timm_config(name, model), model)
        if name not in VIT_LISTED:
            kind = name.split("_")[0]
            fill(model)
            (logits,), far = outputs(torch, model, kind, lambda o: [o[0].numpy()])
            save(a.out / "drawn" / f"{name}.logits.npy", logits)
            row |= {"inputs": INPUTS[kind], "logits": f"drawn/{name}.logits.npy", "max_abs": float(np.abs(logits).max()),
                    "float64_max_difference": far, "between_inputs": float(np.abs(logits[0] - logits[1]).max())}
        rows.append(row)
    for width in WIDTHS:
        for mid in (False, True):
            name = f"yolos_{width}" + ("_mid" if mid else "")
            # mid position embeddings need an image of whole patches: 1333 columns are for those without only
            h, w = YOLOS_SIZES[width]
            config = yolos_config(width, (h, w - w % 16 if mid else w), mid, 91, 100)
            rows.append(lists(a.out, name, "transformers " + v["transformers"], config, make_yolos(config)))
    for width, mid, more in [(w, m, {}) for w in WIDTHS for m in (False, True)] + [("tiny", False, {"qkv_bias": False})]:
        name = f"yolos_{width}_96x128" + ("_mid" if mid else "") + ("_no_qkv_bias" if more else "")
        config = yolos_config(width, (96, 128), mid, 7, 20, **more)
        model = make_yolos(config)
        row = lists(a.out, name, "transformers " + v["transformers"], config, model)
        fill(model)
        (logits, boxes), far = outputs(torch, model, "yolos", lambda o: [o.logits[0].numpy(), o.pred_boxes[0].numpy()])
        save(a.out / "drawn" / f"{name}.logits.npy", logits)
        save(a.out / "drawn" / f"{name}.boxes.npy", boxes)
        rows.append(row | {"inputs": INPUTS["yolos"], "logits": f"drawn/{name}.logits.npy", "boxes": f"drawn/{name}.boxes.npy",
                           "max_abs": float(np.abs(logits).max()), "float64_max_difference": far,
                           "between_inputs": float(np.abs(logits[0] - logits[1]).max())})
    write_json(a.out / "drawn.json", {"rule": RULE, "versions": v, "models": rows})


if __name__ == "__main__":
    main()
