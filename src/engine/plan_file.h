/* SPDX-License-Identifier: Apache-2.0 */
/* Plans and weights as bytes: the "plan" and "weights" sections of a bundle (runtime/bundle.h). Little-endian, no
 * padding but where said. text: u32 length, then so many bytes, none zero. Names of ops, formats and tactics are text,
 * so that lists may grow.
 *
 * plan
 *   text  backend ("cpu")
 *   i64   batch, 1 .. 65536
 *   i32   input: a tensor
 *   u32   outputs, then i32 each: a tensor
 *   u32   tensors, then each:
 *           text name; shape; text format; form; i32 channel stride; u64 offset, size (bytes in the arena); i32 first,
 * last (steps); u8 is output (0, 1) u32   steps, then each: text op; text name; text tactic; i32 stride h, w; i32 pad
 * top, left, bottom, right; i32 groups; u8 activation; f64 epsilon; i32 heads; f64 scale; i64 start, length; shape (of
 * RESHAPE); u8 has bias (0, 1); u8 bits: 1 has residual, 2 has a second output, 4 rounds probabilities; of 4, text
 *           format; u32 inputs (1 .. 8), then each:
 *           u8 kind (1 tensor, 2 constant), i32 index; i32 output; i32 second output, if it has one;
 *           u64 operations, bytes
 *   u64   arena size
 * shape: u8 rank (0 .. 4), i64 a dimension
 * form:  u8: granularity (graph.h: 0 tensor, 1 channel, 2 row, 3 block), + 4 held wide, + 8 more follows; f32 scale;
 * i32 scales (fp32 constant or -1); of 8: i32 factors (likewise), i32 block, u8 zero point, u8 scale rule (0 floor, 1
 *        ceil). Held wide: what is stored are the float32 numbers that codes stand for
 *
 * weights
 *   u64   bytes of the table that follows, at most 64 MiB
 *   u32   constants, then each:
 *           text name; shape; text format; but of fp32: form; u64 bytes of data. Of int8 and e4m3 codes, unless held
 *           wide; of fp16 and bf16 codes; of mxfp8 and nvfp4, for each of the first dimension,
 *           scales of its blocks, then codes (nvfp4: two a byte, the first in the lower half); of all other formats
 * held wide zeros to a multiple of 64 bytes from the section's start; then each constant's data in order, padded
 * likewise */
#ifndef OCT_ENGINE_PLAN_FILE_H
#define OCT_ENGINE_PLAN_FILE_H

#include "base/bytes.h"
#include "engine/engine.h"

/* Appends the plan's bytes to `out`; check out->failed. */
void oct_plan_write(const oct_plan *plan, oct_text *out);
/* From untrusted bytes; `name` is used in errors. Form and numbers are checked here, sense by oct_plan_check. Caller
 * frees. */
octet_status oct_plan_read(oct_plan **plan, const char *name, const uint8_t *data, size_t size);

/* What follows a format's name: the form but for format and channel stride. Reading sets bytes->failed on what cannot
 * be a number of its field. */
void oct_form_put(oct_text *out, const oct_form *form);
oct_form oct_form_get(oct_bytes *bytes, oct_format format);

/* A sink or source of bytes in order. */
typedef octet_status (*oct_write_bytes)(void *user, const void *data, size_t size);
typedef octet_status (*oct_read_bytes)(void *user, void *data, size_t size);
uint64_t oct_weights_file_size(const oct_weights *weights);
octet_status oct_weights_write(const oct_weights *weights, oct_write_bytes write, void *user);
/* Reads a section of `size` bytes straight into the constants. Caller releases. */
octet_status oct_weights_read(oct_weights **weights, const char *name, uint64_t size, oct_read_bytes read, void *user);

#endif
