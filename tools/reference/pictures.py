# SPDX-License-Identifier: Apache-2.0
"""Small synthetic pictures of many kinds, and what Pillow makes of each: tests/golden/pictures/ and its pictures.json.

    python tools/reference/pictures.py

Every picture is drawn here; kinds that Pillow does not write (interlaced PNG, run-length BMP, broken files) are written
by hand. pictures.json: a list of {"file", "stored", "upright"}, each of the two {"size": [width, height], "sha256"} of
the RGB bytes, or null where Pillow refuses the file."""
import hashlib
import io
import json
import pathlib
import struct
import warnings
import zlib

import numpy as np
from PIL import Image, ImageOps

OUT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "golden" / "pictures"
FILES = {}


def texture(width, height, channels=3, seed=1, levels=256):
    """A picture with slopes, edges and noise, the same for the same seed."""
    y, x = np.mgrid[0:height, 0:width].astype(np.int64)
    noise = np.random.default_rng(seed).integers(0, 40, (height, width, channels))
    planes = [(x * (3 + c) + y * (7 - c) + 60 * ((x // 4 + y // 3 + c) % 2)) for c in range(channels)]
    return ((np.stack(planes, -1) * 3 + noise) % levels).astype(np.int64)


def rgb(width=19, height=13, seed=1):
    return Image.fromarray(texture(width, height, 3, seed).astype(np.uint8))


def saved(image, kind, **options):
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def add(name, data):
    FILES[name] = bytes(data)


# PNG by hand: any depth and colour type, interlaced or not, any chunks between.

def chunk(name, data=b"", crc=None):
    check = zlib.crc32(name + data) if crc is None else crc
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", check)


def packed_rows(samples, depth):
    """Rows of samples [height, width, channels] as PNG packs them."""
    for row in samples.reshape(samples.shape[0], -1):
        if depth == 16:
            yield row.astype(">u2").tobytes()
        else:
            bits = "".join(format(int(v), f"0{depth}b") for v in row)
            bits += "0" * (-len(bits) % 8)
            yield bytes(int(bits[i:i + 8], 2) for i in range(0, len(bits), 8))


def filtered(rows, step):
    """Rows with the five filters in turn."""
    out, above = b"", None
    for number, row in enumerate(rows):
        above = above if above is not None else bytes(len(row))
        kind, line = number % 5, bytearray()
        for i, value in enumerate(row):
            left = row[i - step] if i >= step else 0
            corner = above[i - step] if i >= step else 0
            up = above[i]
            p = left + up - corner
            near = min((abs(p - left), 0, left), (abs(p - up), 1, up), (abs(p - corner), 2, corner))[2]
            line.append((value - (0, left, up, (left + up) // 2, near)[kind]) % 256)
        out += bytes([kind]) + line
        above = row
    return out


def png(samples, depth, colour, interlaced=False, before=b"", after=b"", size=None, pieces=1, header=None):
    height, width, channels = samples.shape
    step = max(1, depth * channels // 8)
    if interlaced:
        passes = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
        raw = b""
        for x, y, dx, dy in passes:
            part = samples[y::dy, x::dx]
            if part.size:
                raw += filtered(packed_rows(part, depth), step)
    else:
        raw = filtered(packed_rows(samples, depth), step)
    stream = zlib.compress(raw, 9)
    cut = -(-len(stream) // pieces)
    data = b"".join(chunk(b"IDAT", stream[i:i + cut]) for i in range(0, len(stream), cut))
    shown = size or (width, height)
    start = chunk(b"IHDR", header or struct.pack(">IIBBBBB", *shown, depth, colour, 0, 0, int(interlaced)))
    return b"\x89PNG\r\n\x1a\n" + start + before + data + after + chunk(b"IEND")


def palette_chunk(entries, seed=3):
    return chunk(b"PLTE", np.random.default_rng(seed).integers(0, 256, entries * 3).astype(np.uint8).tobytes())


def exif(orientation, order="II", kind=3, count=1, extra=()):
    mark = "<" if order == "II" else ">"
    value = struct.pack(mark + {1: "B3x", 3: "H2x", 4: "I", 9: "i", 11: "f"}[kind], orientation)
    entries = [struct.pack(mark + "HHI4s", 274, kind, count, value)] + list(extra)
    body = order.encode() + struct.pack(mark + "HI", 42, 8) + struct.pack(mark + "H", len(entries))
    return body + b"".join(entries) + struct.pack(mark + "I", 0)


XMP = '<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:Description tiff:Orientation="{}"/></x:xmpmeta>'
XMP_ELEMENT = "<x:xmpmeta><tiff:Orientation>{}</tiff:Orientation></x:xmpmeta>"


def make_png():
    for depth, colour, channels in [(1, 0, 1), (2, 0, 1), (4, 0, 1), (8, 0, 1), (16, 0, 1), (8, 2, 3), (16, 2, 3),
                                    (1, 3, 1), (2, 3, 1), (4, 3, 1), (8, 3, 1), (8, 4, 2), (16, 4, 2), (8, 6, 4), (16, 6, 4)]:
        samples = texture(13, 11, channels, depth + colour, min(1 << depth, 65536))
        if depth == 16 and colour == 0:
            samples = samples % 700  # on both sides of the clip
        palette = palette_chunk(1 << depth if depth < 8 else 200) if colour == 3 else b""
        for interlaced in (False, True):
            name = f"png_d{depth}_c{colour}{'_interlaced' if interlaced else ''}.png"
            add(name, png(samples, depth, colour, interlaced, palette, pieces=3))
    small = texture(3, 2, 3, 4)
    for width, height in [(1, 1), (2, 9), (9, 2), (5, 5)]:
        add(f"png_interlaced_{width}x{height}.png", png(texture(width, height, 3, 5), 8, 2, True))
        add(f"png_interlaced_bits_{width}x{height}.png", png(texture(width, height, 1, 5, 2), 1, 0, True))
    index = texture(9, 7, 1, 6, 16)
    add("png_palette_short.png", png(index, 4, 3, before=palette_chunk(5)))
    add("png_palette_none.png", png(index, 4, 3))
    add("png_palette_257.png", png(index, 8, 3, before=palette_chunk(257)))
    add("png_palette_alpha.png", png(index, 4, 3, before=palette_chunk(16) + chunk(b"tRNS", bytes([0, 128, 255, 7]))))
    add("png_palette_one_clear.png", png(index, 4, 3, before=palette_chunk(16) + chunk(b"tRNS", b"\xff\xff\0\xff")))
    add("png_grey_clear.png", png(texture(9, 7, 1), 8, 0, before=chunk(b"tRNS", b"\0\x20")))
    add("png_grey16_clear.png", png(texture(9, 7, 1, 2, 400), 16, 0, before=chunk(b"tRNS", b"\1\0")))
    add("png_rgb_clear.png", png(texture(9, 7), 8, 2, before=chunk(b"tRNS", b"\0\1\0\2\0\3")))
    add("png_rgb_clear_short.png", png(texture(9, 7), 8, 2, before=chunk(b"tRNS", b"\0\1")))
    picture = texture(7, 5, 3, 8)
    good = png(picture, 8, 2)
    add("png_orientation_6_before.png", png(picture, 8, 2, before=chunk(b"eXIf", exif(6))))
    add("png_orientation_8_after.png", png(picture, 8, 2, after=chunk(b"eXIf", exif(8, "MM"))))
    add("png_orientation_prefix.png", png(picture, 8, 2, before=chunk(b"eXIf", b"Exif\0\0" + exif(3))))
    add("png_xmp.png", png(picture, 8, 2, before=chunk(b"iTXt", b"XML:com.adobe.xmp\0\0\0\0\0" + XMP.format(5).encode())))
    add("png_xmp_packed.png", png(picture, 8, 2, after=chunk(
        b"iTXt", b"XML:com.adobe.xmp\0\1\0\0\0" + zlib.compress(XMP_ELEMENT.format(7).encode()))))
    profile = f"\nexif\n{len(exif(6)) + 6:8}\n{(b'Exif' + bytes(2) + exif(6)).hex()}\n".encode()
    add("png_profile.png", png(picture, 8, 2, before=chunk(b"tEXt", b"Raw profile type exif\0" + profile)))
    add("png_profile_packed.png", png(picture, 8, 2, before=chunk(
        b"zTXt", b"Raw profile type exif\0\0" + zlib.compress(profile))))
    add("png_profile_broken.png", png(picture, 8, 2, before=chunk(b"tEXt", b"Raw profile type exif\0\na\nb\nc\nzz")))
    add("png_no_end.png", good[:-12])
    add("png_end_cut.png", good[:-7])
    add("png_trailing.png", good + b"trailing garbage")
    add("png_half_a_line.png", png(picture, 8, 2, size=(8, 9)))
    add("png_data_cut.png", png(texture(20, 20), 8, 2)[:-200])
    add("png_bad_data_check.png", good[:-16] + b"\0\0\0\0" + good[-12:])
    add("png_bad_check_before.png", png(picture, 8, 2, before=chunk(b"tEXt", b"a\0b", crc=5)))
    add("png_bad_check_after.png", png(picture, 8, 2, after=chunk(b"tEXt", b"a\0b", crc=5)))
    add("png_short_phys.png", png(picture, 8, 2, before=chunk(b"pHYs", b"\0" * 5)))
    add("png_short_phys_after.png", png(picture, 8, 2, after=chunk(b"pHYs", b"\0" * 5)))
    add("png_profile_method.png", png(picture, 8, 2, before=chunk(b"iCCP", b"name\0\1data")))
    add("png_unknown_chunk.png", png(picture, 8, 2, before=chunk(b"prVt", b"abc") + chunk(b"UNKN", b"x")))
    add("png_bad_depth.png", png(picture, 8, 2, header=struct.pack(">IIBBBBB", 7, 5, 4, 2, 0, 0, 0)))
    add("png_bad_filter_method.png", png(picture, 8, 2, header=struct.pack(">IIBBBBB", 7, 5, 8, 2, 0, 1, 0)))
    add("png_odd_compression_method.png", png(picture, 8, 2, header=struct.pack(">IIBBBBB", 7, 5, 8, 2, 9, 0, 0)))
    add("png_huge.png", png(small, 8, 2, size=(100000, 100000)))
    add("png_wide.png", png(small, 8, 2, size=(0x7fffffff, 1)))
    add("png_empty.png", png(small, 8, 2, size=(0, 2)))
    control = chunk(b"acTL", struct.pack(">II", 2, 0))
    part = chunk(b"fcTL", struct.pack(">IIIIIHHBB", 0, 3, 2, 1, 2, 1, 10, 0, 0))
    add("png_animation_small_frame.png", png(texture(3, 2, 3, 9), 8, 2, before=control + part, size=(7, 5)))
    add("png_animation_hidden.png", png(picture, 8, 2, before=control, after=part))


def jpeg_with(segments, base):
    """Segments right after the start marker."""
    return base[:2] + b"".join(b"\xff" + bytes([m]) + struct.pack(">H", len(d) + 2) + d for m, d in segments) + base[2:]


def make_jpeg():
    picture = rgb(23, 17)
    base = saved(picture, "JPEG", quality=80)
    cmyk = Image.fromarray(texture(18, 15, 4, 3).astype(np.uint8), "CMYK")
    data = saved(cmyk, "JPEG", quality=85)
    add("jpeg_cmyk.jpg", data)
    at = data.index(b"Adobe")
    add("jpeg_ycck.jpg", data[:at + 11] + b"\2" + data[at + 12:])
    add("jpeg_cmyk_no_adobe.jpg", data[:at - 4] + data[at + 12:])
    add("jpeg_cmyk_progressive.jpg", saved(cmyk, "JPEG", quality=70, progressive=True))
    add("jpeg_grey.jpg", saved(picture.convert("L"), "JPEG"))
    add("jpeg_rgb_adobe.jpg", saved(picture, "JPEG", keep_rgb=True))
    for name, sampling in (("444", 0), ("422", 1), ("420", 2), ("440", "4:4:0"), ("411", "4:1:1")):
        try:
            add(f"jpeg_{name}.jpg", saved(picture, "JPEG", quality=75, subsampling=sampling))
            add(f"jpeg_{name}_progressive.jpg", saved(picture, "JPEG", quality=40, subsampling=sampling, progressive=True))
        except (TypeError, ValueError, OSError):
            pass
    add("jpeg_restart.jpg", saved(rgb(50, 40), "JPEG", restart_marker_blocks=2))
    add("jpeg_q5.jpg", saved(rgb(40, 30), "JPEG", quality=5))
    head = b"Exif\0\0"
    for k in range(1, 9):
        add(f"jpeg_orientation_{k}.jpg", jpeg_with([(0xe1, head + exif(k, "II" if k % 2 else "MM"))], base))
    add("jpeg_orientation_long.jpg", jpeg_with([(0xe1, head + exif(6, kind=4))], base))
    add("jpeg_orientation_byte.jpg", jpeg_with([(0xe1, head + exif(6, kind=1))], base))
    add("jpeg_orientation_float.jpg", jpeg_with([(0xe1, head + exif(6.0, kind=11))], base))
    add("jpeg_orientation_two_values.jpg", jpeg_with([(0xe1, head + exif(6, count=2))], base))
    add("jpeg_orientation_no_value.jpg", jpeg_with([(0xe1, head + exif(6, count=0))], base))
    add("jpeg_orientation_0.jpg", jpeg_with([(0xe1, head + exif(0)), (0xe1, b"http://ns.adobe.com/xap/1.0/\0" + XMP.format(6).encode())], base))
    add("jpeg_exif_twice.jpg", jpeg_with([(0xe1, head + exif(1)[:10]), (0xe1, head + exif(6)[10:])], base))
    add("jpeg_exif_empty.jpg", jpeg_with([(0xe1, head), (0xe1, b"http://ns.adobe.com/xap/1.0/\0" + XMP.format(6).encode())], base))
    add("jpeg_exif_not_tiff.jpg", jpeg_with([(0xe1, head + b"what is this"), (0xe1, b"http://ns.adobe.com/xap/1.0/\0" + XMP.format(6).encode())], base))
    add("jpeg_exif_far.jpg", jpeg_with([(0xe1, head + b"II*\0\xff\xff\xff\x7f"), (0xe1, b"http://ns.adobe.com/xap/1.0/\0" + XMP_ELEMENT.format(6).encode())], base))
    add("jpeg_exif_cut.jpg", jpeg_with([(0xe1, head + exif(6)[:16])], base))
    add("jpeg_exif_big_tag.jpg", jpeg_with([(0xe1, head + exif(6, extra=[struct.pack("<HHII", 270, 2, 900000, 26)]))], base))
    add("jpeg_xmp.jpg", jpeg_with([(0xe1, b"http://ns.adobe.com/xap/1.0/\0" + XMP.format(8).encode())], base))
    add("jpeg_xmp_9.jpg", jpeg_with([(0xe1, b"http://ns.adobe.com/xap/1.0/\0" + XMP.format(9).encode())], base))
    add("jpeg_trailing.jpg", base + b"trailing garbage")
    add("jpeg_no_end.jpg", base[:-2])
    add("jpeg_cut.jpg", base[:-60])
    add("jpeg_header_only.jpg", base[:120])
    add("jpeg_padding.jpg", base[:2] + b"\xff\xff\xff" + base[2:])
    add("jpeg_junk_before_marker.jpg", base[:2] + b"\0\1\2" + base[2:])
    add("jpeg_short_jfif.jpg", jpeg_with([(0xe0, b"JFIF")], base))
    add("jpeg_short_icc.jpg", jpeg_with([(0xe2, b"ICC_PROFILE\0")], base))
    sof = base.index(b"\xff\xc0")
    add("jpeg_12_bit.jpg", base[:sof + 4] + b"\x0c" + base[sof + 5:])
    add("jpeg_taller_than_data.jpg", base[:sof + 5] + b"\0\x40" + base[sof + 7:])
    add("jpeg_huge.jpg", base[:sof + 5] + b"\xff\xdc\xff\xdc" + base[sof + 9:])
    out = io.BytesIO()
    picture.save(out, "MPO", save_all=True, append_images=[rgb(23, 17, 9)])
    add("jpeg_mpo.jpg", out.getvalue())


def make_webp():
    picture = rgb(21, 14)
    alpha = Image.fromarray(texture(16, 12, 4, 7).astype(np.uint8), "RGBA")
    add("webp_lossy.webp", saved(picture, "WEBP", quality=60))
    add("webp_lossless.webp", saved(picture, "WEBP", lossless=True))
    add("webp_lossy_alpha.webp", saved(alpha, "WEBP", quality=50))
    add("webp_lossless_alpha.webp", saved(alpha, "WEBP", lossless=True))
    add("webp_lossless_exact.webp", saved(alpha, "WEBP", lossless=True, exact=True))
    add("webp_animated.webp", saved(picture, "WEBP", save_all=True, append_images=[rgb(21, 14, 5)], lossless=True))
    add("webp_animated_alpha.webp", saved(alpha, "WEBP", save_all=True, append_images=[alpha.transpose(0)], quality=70))
    add("webp_orientation.webp", saved(picture, "WEBP", quality=60, exif=exif(6)))
    add("webp_xmp.webp", saved(picture, "WEBP", quality=60, xmp=XMP.format(3).encode()))
    data = FILES["webp_lossy.webp"]
    add("webp_trailing.webp", data + b"trailing garbage")
    add("webp_cut.webp", data[:-20])
    data = bytearray(FILES["webp_animated.webp"])
    data[24:30] = b"\xff\xff\xff\xff\xff\xff"
    add("webp_huge.webp", data)
    data = bytearray(FILES["webp_animated.webp"])
    data[24:30] = struct.pack("<I", 29)[:3] + struct.pack("<I", 19)[:3]
    add("webp_canvas_larger.webp", data)


def bmp(width, height, bits, pixels, palette=b"", compression=0, colours=0, header=40, masks=b"", offset=None, extra=b""):
    if header == 12:
        info = struct.pack("<IHHHH", 12, width, height, 1, bits)
    else:
        info = struct.pack("<IiiHHIIiiII", header, width, height, 1, bits, compression, len(pixels), 0, 0, colours, 0) + extra
    start = 14 + len(info) + len(masks) + len(palette)
    return b"BM" + struct.pack("<IHHI", start + len(pixels), 0, 0, start if offset is None else offset) + info + masks + palette + pixels


def bmp_rows(samples, bits):
    return b"".join(row + b"\0" * (-len(row) % 4) for row in packed_rows(samples, bits))


def colours_of(count, entry=4, seed=2):
    values = np.random.default_rng(seed).integers(0, 256, (count, entry)).astype(np.uint8)
    return values.tobytes()


def make_bmp():
    for bits in (1, 4, 8):
        index = texture(11, 6, 1, bits, 1 << bits)
        add(f"bmp_{bits}.bmp", bmp(11, 6, bits, bmp_rows(index, bits), colours_of(1 << bits)))
        add(f"bmp_{bits}_top_down.bmp", bmp(11, -6, bits, bmp_rows(index, bits), colours_of(1 << bits)))
        add(f"bmp_{bits}_os2.bmp", bmp(11, 6, bits, bmp_rows(index, bits), colours_of(1 << bits, 3), header=12))
    index = texture(11, 6, 1, 4, 16)
    grey = b"".join(bytes([i, i, i, 0]) for i in range(256))
    add("bmp_8_grey.bmp", bmp(11, 6, 8, bmp_rows(texture(11, 6, 1), 8), grey))
    add("bmp_1_black_white.bmp", bmp(11, 6, 1, bmp_rows(index % 2, 1), b"\0\0\0\0\xff\xff\xff\0"))
    add("bmp_1_white_black.bmp", bmp(11, 6, 1, bmp_rows(index % 2, 1), b"\xff\xff\xff\0\0\0\0\0"))
    add("bmp_8_two_colours.bmp", bmp(11, 6, 8, bmp_rows(index % 2, 8), b"\0\0\0\0\xff\xff\xff\0", colours=2))
    add("bmp_4_grey.bmp", bmp(11, 6, 4, bmp_rows(index, 4), grey[:64]))
    add("bmp_4_five_colours.bmp", bmp(11, 6, 4, bmp_rows(index, 4), colours_of(5), colours=5))
    add("bmp_8_300_colours.bmp", bmp(11, 6, 8, bmp_rows(index, 8), colours_of(300), colours=300))
    add("bmp_offset_zero.bmp", bmp(11, 6, 4, bmp_rows(index, 4), colours_of(16), offset=0))
    add("bmp_offset_before_palette.bmp", bmp(11, 6, 4, bmp_rows(index, 4), colours_of(16), offset=54))
    for bits, channels in ((24, 3), (32, 4)):
        pixels = bmp_rows(texture(9, 7, channels, bits), 8)
        add(f"bmp_{bits}.bmp", bmp(9, 7, bits, pixels))
        add(f"bmp_{bits}_top_down.bmp", bmp(9, -7, bits, pixels))
    words = texture(9, 7, 1, 5, 65536).astype("<u2")
    rows16 = b"".join(row.tobytes() + b"\0" * (-row.nbytes % 4) for row in words.reshape(7, 9) * 31)
    add("bmp_16.bmp", bmp(9, 7, 16, rows16))
    add("bmp_16_565.bmp", bmp(9, 7, 16, rows16, compression=3, masks=struct.pack("<III", 0xf800, 0x7e0, 0x1f)))
    add("bmp_16_555.bmp", bmp(9, 7, 16, rows16, compression=3, masks=struct.pack("<III", 0x7c00, 0x3e0, 0x1f)))
    add("bmp_16_444.bmp", bmp(9, 7, 16, rows16, compression=3, masks=struct.pack("<III", 0xf00, 0xf0, 0xf)))
    pixels = bmp_rows(texture(9, 7, 4, 6), 8)
    for number, masks in enumerate([(0xff0000, 0xff00, 0xff, 0), (0xff000000, 0xff0000, 0xff00, 0), (0xff000000, 0xff00, 0xff, 0),
                                    (0xff000000, 0xff0000, 0xff00, 0xff), (0xff, 0xff00, 0xff0000, 0xff000000),
                                    (0xff0000, 0xff00, 0xff, 0xff000000), (0xff000000, 0xff00, 0xff, 0xff0000), (0, 0, 0, 0), (1, 2, 3, 4)]):
        add(f"bmp_32_fields_{number}.bmp", bmp(9, 7, 32, pixels, compression=3, header=56, extra=struct.pack("<IIII", *masks)))
    add("bmp_32_fields_short.bmp", bmp(9, 7, 32, pixels, compression=3, masks=struct.pack("<III", 0xff0000, 0xff00, 0xff)))
    add("bmp_v5.bmp", bmp(9, 7, 32, pixels, header=124, extra=bytes(84)))
    add("bmp_os2_v2.bmp", bmp(9, 7, 24, bmp_rows(texture(9, 7), 8), header=64, extra=bytes(24)))
    runs = b"\x03\x05\x04\x02\0\0" + b"\0\x05\1\2\3\4\5\0" + b"\x02\x07\0\0" + b"\0\2\2\1" + b"\x05\x09\0\0" + b"\x07\x01\0\1"
    add("bmp_rle8.bmp", bmp(7, 5, 8, runs, colours_of(256), compression=1))
    add("bmp_rle8_long_run.bmp", bmp(7, 2, 8, b"\x20\x05\0\0\x07\2\0\1", colours_of(256), compression=1))
    add("bmp_rle8_cut.bmp", bmp(7, 5, 8, runs[:12], colours_of(256), compression=1))
    add("bmp_rle8_early_end.bmp", bmp(7, 5, 8, b"\x07\1\0\1", colours_of(256), compression=1))
    add("bmp_rle8_grey.bmp", bmp(7, 5, 8, runs, grey, compression=1))
    add("bmp_rle8_top_down.bmp", bmp(7, -5, 8, runs, colours_of(256), compression=1))
    runs = b"\x07\x5a\0\0" + b"\0\x05\x12\x34\x50\0" + b"\x02\x70\0\0" + b"\x03\x21\x04\x43\0\0" + b"\x07\x01\0\1"
    add("bmp_rle4.bmp", bmp(7, 4, 4, runs, colours_of(16), compression=2))
    add("bmp_rle_24.bmp", bmp(7, 4, 24, runs, compression=1))
    add("bmp_rle4_one_bit.bmp", bmp(7, 4, 1, runs, b"\0\0\0\0\xff\xff\xff\0", compression=2))
    add("bmp_compression_4.bmp", bmp(9, 7, 24, pixels, compression=4))
    add("bmp_cut.bmp", FILES["bmp_24.bmp"][:-5])
    add("bmp_header_20.bmp", FILES["bmp_24.bmp"][:14] + struct.pack("<I", 20) + FILES["bmp_24.bmp"][18:])
    add("bmp_huge.bmp", bmp(100000, 100000, 24, b""))
    add("bmp_bare.dib", FILES["bmp_24.bmp"][14:])


def make_ppm():
    def add(name, data):
        """With a zero byte in a comment, so that no tool takes the file for text and mends it."""
        FILES[name] = data[:2] + b"\n#\0\n" + data[2:]

    grey, colour = texture(7, 5, 1), texture(7, 5, 3)
    bits = texture(11, 5, 1, 3, 2)
    add("ppm_p4.pbm", b"P4\n# a comment\n11 5\n" + b"".join(packed_rows(bits, 1)))
    add("ppm_p1.pbm", b"P1 11 5\n" + b"\n".join(b"".join(b"%d" % v for v in r) for r in bits[..., 0]) + b"# end\n")
    add("ppm_p1_bad.pbm", b"P1 11 5\n" + b"012" * 30)
    add("ppm_p1_bad_after.pbm", b"P1 11 5\n" + b"01" * 30 + b" x")
    for maxval in (1, 7, 100, 255, 256, 1000, 65535):
        big, kind = maxval > 255, ">u2" if maxval > 255 else "u1"
        for number, samples in ((5, grey), (6, colour)):
            values = (samples * 257 if big else samples) % (maxval + 1)
            if big and number == 5:
                values = values % 300
            add(f"ppm_p{number}_{maxval}.ppm", b"P%d %d\t%d\r%d " % (number, 7, 5, maxval) + values.astype(kind).tobytes())
            text = b" ".join(b"%d" % v for v in values.reshape(-1))
            add(f"ppm_p{number - 3}_{maxval}.ppm", b"P%d#c\n7 5\n# d\n%d\n" % (number - 3, maxval) + text)
    add("ppm_p5_above.pgm", b"P5 2 2 7\n\1\7\x08\xff")
    add("ppm_p2_above.pgm", b"P2 2 2 7\n1 7 8 2")
    add("ppm_p2_negative.pgm", b"P2 2 2 7\n1 7 -1 2")
    add("ppm_p2_odd.pgm", b"P2 2 2 77\n+1 7_0#c\n1 #\n2\n3# 9 9\n ")
    add("ppm_p2_cut.pgm", b"P2 2 2 77\n1 7 5")
    add("ppm_p6_cut.ppm", b"P6 2 2 255\n12345678901")
    add("ppm_p6_trailing.ppm", b"P6 2 2 255\n123456789012345")
    add("ppm_maxval_0.ppm", b"P6 2 2 0\n123456789012")
    add("ppm_maxval_65536.ppm", b"P6 2 2 65536\n123456789012345678901234")
    add("ppm_huge.ppm", b"P6 100000 100000 255\n123")
    add("ppm_comment_in_number.ppm", b"P6 2#x\n 2 25#y\n5 123456789012")
    add("ppm_long_number.ppm", b"P6 00000000002 2 255\n123456789012")


def answer(data, upright):
    """What Pillow gives, or None where it refuses the file; exif_transpose's own errors leave the picture as stored."""
    try:
        with Image.open(io.BytesIO(data)) as image:
            image.load()
            if upright:
                try:
                    image = ImageOps.exif_transpose(image)
                except (SyntaxError, ValueError, struct.error):
                    pass
            image = image.convert("RGB")
            return {"size": list(image.size), "sha256": hashlib.sha256(image.tobytes()).hexdigest()}
    except Exception:
        return None


def main():
    warnings.simplefilter("ignore")
    for make in (make_png, make_jpeg, make_webp, make_bmp, make_ppm):
        make()
    OUT.mkdir(parents=True, exist_ok=True)
    for old in OUT.iterdir():
        old.unlink()
    rows = []
    for name in sorted(FILES):
        (OUT / name).write_bytes(FILES[name])
        rows.append({"file": name, "stored": answer(FILES[name], False), "upright": answer(FILES[name], True)})
    text = ",\n".join(json.dumps(row) for row in rows)
    (OUT / "pictures.json").write_text("[\n" + text + "\n]\n")
    refused = sum(row["stored"] is None for row in rows)
    print(f"{len(rows)} pictures, {sum(map(len, FILES.values()))} bytes, {refused} that Pillow refuses")


if __name__ == "__main__":
    main()
