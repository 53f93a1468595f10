# SPDX-License-Identifier: Apache-2.0
"""Error-compensated rounding (GPTQ) by NumPy in float64, column by column with the inverse of the second moments updated
after each, as the paper derives it before any factoring: inputs, weights, and the codes of int8 a channel and E4M3 a
tensor."""
import ml_dtypes
import numpy as np

from common import arguments, save

ROWS, INPUTS, OUTPUTS = 96, 24, 8


def draw():
    """Inputs whose columns hang together, one of them always zero; weights of unlike outputs."""
    r = np.random.default_rng(7)
    x = r.standard_normal((ROWS, INPUTS)) @ r.standard_normal((INPUTS, INPUTS))
    x[:, 5] = 0
    w = r.standard_normal((OUTPUTS, INPUTS)) * np.exp(r.standard_normal((OUTPUTS, 1)))
    return x.astype(np.float32), w.astype(np.float32)


def int8(values, scale):
    return np.clip(np.rint(values.astype(np.float32) / scale), -127, 127).astype(np.int8).view(np.uint8)


def e4m3(values, scale):
    return np.clip(values.astype(np.float32) / scale, -448, 448).astype(ml_dtypes.float8_e4m3fn).view(np.uint8)


def numbers(codes, scale, dtype):
    return codes.view(dtype).astype(np.float32) * scale


def compensated(x, w, encode, dtype, scale):
    h = x.astype(np.float64).T @ x.astype(np.float64)
    seen = np.diag(h) > 0
    order = np.argsort(-np.diag(h), kind="stable")
    damped = h + np.diag(np.where(seen, 0.01 * np.trace(h) / INPUTS, 1.0))
    inverse = np.linalg.inv(damped)
    w = w.astype(np.float64).copy()
    codes = np.zeros(w.shape, np.uint8)
    for j in order:
        codes[:, j] = encode(w[:, j], scale)
        error = w[:, j] - numbers(codes[:, j].copy(), scale, dtype)
        w -= np.outer(error / inverse[j, j], inverse[j])
        inverse -= np.outer(inverse[:, j], inverse[j]) / inverse[j, j]
    return codes


def main():
    out = arguments(__doc__).parse_args().out / "compensated"
    x, w = draw()
    save(out / "inputs.npy", x)
    save(out / "weights.npy", w)
    channel = (np.abs(w).max(1) / np.float32(127)).astype(np.float32)
    tensor = np.full(OUTPUTS, np.abs(w).max() / np.float32(448), np.float32)
    for name, encode, dtype, scale in (("int8", int8, np.int8, channel), ("e4m3", e4m3, ml_dtypes.float8_e4m3fn, tensor)):
        codes = compensated(x, w, encode, dtype, scale)
        save(out / f"{name}.npy", codes)
        off = lambda q: np.square(x @ (w - numbers(q.copy(), scale[:, None], dtype)).T).sum()  # noqa: E731
        print(name, "error of the outputs:", off(codes), "rounded to nearest:", off(encode(w, scale[:, None])))


if __name__ == "__main__":
    main()
