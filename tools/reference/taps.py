# SPDX-License-Identifier: Apache-2.0
"""The output of every module of a torch model, by name, to find the first layer that differs."""
import numpy as np


class Taps:
    def __init__(self, model):
        self.values, self.hooks = {}, []
        for name, module in model.named_modules():
            if name:
                self.hooks.append(module.register_forward_hook(self.keep(name)))

    def keep(self, name):
        def hook(module, inputs, output):
            v = output[0] if isinstance(output, tuple) else output
            if hasattr(v, "detach"):
                self.values[name] = v.detach().cpu().numpy().copy()
        return hook

    def __enter__(self):
        return self

    def __exit__(self, *error):
        for h in self.hooks:
            h.remove()

    def save(self, path, **more):
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez(path, **self.values, **{k: np.asarray(v) for k, v in more.items()})
        print(path.name, len(self.values), "taps")
