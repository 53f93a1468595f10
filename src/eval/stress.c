/* SPDX-License-Identifier: Apache-2.0 */
#include "eval/stress.h"

#include <math.h>
#include <stdint.h>

#include "eval/random.h"

/* Where a number stands: row y, column x, channel c of an h x w picture; `state` is drawn from in order. */
typedef struct spot {
    int y, x, c, h, w;
    uint64_t *state;
    float value; /* of the row in the table */
} spot;
typedef float pattern(const spot *s);

#define BLACK (-2.1179f) /* the levels 0 and 255 under ImageNet's mean and deviation, about */
#define WHITE 2.64f

static float draw(const spot *s) { /* uniform in [-1, 1) */
    return (float)((double)(next_random(s->state) >> 11) * 0x1p-52 - 1.0);
}
static float constant(const spot *s) {
    return s->value;
}
static float one_channel(const spot *s) {
    return s->c == (int)s->value ? WHITE : BLACK;
}
static float checkers(const spot *s) {
    const int side = (int)s->value;
    return (s->y / side + s->x / side) % 2 != 0 ? WHITE : BLACK;
}
static float rows(const spot *s) {
    return s->y % 2 != 0 ? s->value : -s->value;
}
static float columns(const spot *s) {
    return s->x % 2 != 0 ? s->value : -s->value;
}
static float ramp_right(const spot *s) {
    return BLACK + (WHITE - BLACK) * (float)s->x / (float)s->w;
}
static float ramp_down(const spot *s) {
    return BLACK + (WHITE - BLACK) * (float)s->y / (float)s->h;
}
static float ramp_diagonal(const spot *s) {
    return BLACK + (WHITE - BLACK) * (float)(s->x + s->y) / (float)(s->w + s->h);
}
static float middle_pixel(const spot *s) {
    return s->y == s->h / 2 && s->x == s->w / 2 ? s->value : 0.0f;
}
static float corner_pixel(const spot *s) {
    return s->y == s->h - 1 && s->x == s->w - 1 ? s->value : 0.0f;
}
static float border(const spot *s) {
    return s->y == 0 || s->x == 0 || s->y == s->h - 1 || s->x == s->w - 1 ? WHITE : BLACK;
}
static float half(const spot *s) {
    return s->x < s->w / 2 ? BLACK : WHITE;
}
static float noise(const spot *s) {
    return s->value * draw(s);
}
static float bell_noise(const spot *s) { /* twelve uniform numbers: nearly normal, deviation 1 */
    float sum = 0.0f;
    for (int i = 0; i < 12; i++) sum += 0.5f * draw(s);
    return s->value * sum;
}
static float salt_and_pepper(const spot *s) {
    const float u = draw(s);
    return u < -0.9f ? BLACK : u > 0.9f ? WHITE : 0.0f;
}
static float heavy_tail(const spot *s) { /* one number in a thousand is a thousand times larger */
    const float u = draw(s);
    return draw(s) * (u > 0.998f ? 2000.0f : 2.0f);
}
static float waves(const spot *s) { /* `value` of them across */
    return 2.0f * sinf(6.2831853f * s->value * (float)s->x / (float)s->w);
}
static float signs(const spot *s) {
    return (s->y + s->x + s->c) % 2 != 0 ? s->value : -s->value;
}

static const struct {
    const char *name, *words;
    pattern *at;
    float value;
} inputs[] = {
    {"zeros", "0 everywhere", constant, 0.0f},
    {"minus_zeros", "-0 everywhere", constant, -0.0f},
    {"ones", "1 everywhere", constant, 1.0f},
    {"minus_ones", "-1 everywhere", constant, -1.0f},
    {"black", "level 0", constant, BLACK},
    {"white", "level 255", constant, WHITE},
    {"red", "first channel white, others black", one_channel, 0.0f},
    {"green", "second channel white, others black", one_channel, 1.0f},
    {"blue", "third channel white, others black", one_channel, 2.0f},
    {"checkers_1", "checkers of 1 pixel", checkers, 1.0f},
    {"checkers_8", "checkers of 8 pixels", checkers, 8.0f},
    {"checkers_16", "checkers of 16 pixels: a patch of a transformer", checkers, 16.0f},
    {"rows", "rows of 2 and -2", rows, 2.0f},
    {"columns", "columns of 2 and -2", columns, 2.0f},
    {"ramp_right", "black to white, left to right", ramp_right, 0.0f},
    {"ramp_down", "black to white, top to bottom", ramp_down, 0.0f},
    {"ramp_diagonal", "black to white, corner to corner", ramp_diagonal, 0.0f},
    {"half", "left half black, right half white", half, 0.0f},
    {"border", "black with a white border of 1 pixel", border, 0.0f},
    {"pixel_middle", "one pixel of 100 in the middle, 0 elsewhere", middle_pixel, 100.0f},
    {"pixel_corner", "one pixel of 100 in the last corner, 0 elsewhere", corner_pixel, 100.0f},
    {"noise", "uniform in [-2, 2)", noise, 2.0f},
    {"noise_normal", "normal, deviation 1", bell_noise, 1.0f},
    {"salt_and_pepper", "a tenth black or white, 0 elsewhere", salt_and_pepper, 0.0f},
    {"heavy_tail", "uniform in [-2, 2), one in a thousand a thousand times larger", heavy_tail, 0.0f},
    {"waves_2", "2 waves across", waves, 2.0f},
    {"waves_50", "50 waves across", waves, 50.0f},
    {"noise_10", "uniform in [-10, 10)", noise, 10.0f},
    {"noise_100", "uniform in [-100, 100)", noise, 100.0f},
    {"noise_1000", "uniform in [-1000, 1000)", noise, 1000.0f},
    {"fp16_least", "2^-24, the least fp16 above 0", constant, 0x1p-24f},
    {"fp16_normal", "2^-14, the least normal fp16", constant, 0x1p-14f},
    {"denormal", "2^-140, a float32 that is not normal", constant, 0x1p-140f},
    {"fp16_largest", "65504, the largest fp16", constant, 65504.0f},
    {"fp16_signs", "65504 and -65504 in turns", signs, 65504.0f},
    {"fp16_pixel", "one pixel of 65504, 0 elsewhere", middle_pixel, 65504.0f},
    {"beyond_fp16", "65520, infinity as fp16", constant, 65520.0f},
    {"beyond_fp16_pixel", "one pixel of 1e6, 0 elsewhere", middle_pixel, 1e6f},
    {"large", "1e10 everywhere", constant, 1e10f},
};

size_t stress_count(void) {
    return sizeof inputs / sizeof *inputs;
}
const char *stress_name(size_t index) {
    return inputs[index].name;
}
const char *stress_words(size_t index) {
    return inputs[index].words;
}

bool stress_is_beyond_fp16(size_t index) {
    const float most = 65520.0f; /* and above: rounds to infinity */
    pattern *at = inputs[index].at;
    return (at == constant || at == middle_pixel || at == corner_pixel || at == signs) &&
           fabsf(inputs[index].value) >= most;
}

void stress_fill(size_t index, float *input, int height, int width) {
    uint64_t state = index + 1;
    spot s = {.h = height, .w = width, .state = &state, .value = inputs[index].value};
    for (s.y = 0; s.y < height; s.y++)
        for (s.x = 0; s.x < width; s.x++)
            for (s.c = 0; s.c < 3; s.c++) *input++ = inputs[index].at(&s);
}

static void count(const float *values, size_t n, stress_outcome *outcome) {
    for (size_t i = 0; i < n; i++) {
        if (isnan(values[i]))
            outcome->nans++;
        else if (isinf(values[i]))
            outcome->infinities++;
        else
            outcome->largest = fmaxf(outcome->largest, fabsf(values[i]));
    }
}

octet_status stress_run(octet_session *session, size_t index, float *buffer, int height, int width,
                        stress_outcome *outcome) {
    octet_picture picture = OCTET_PICTURE_DEFAULT;
    octet_result *result;
    size_t rows_, columns_;
    *outcome = (stress_outcome){0};
    stress_fill(index, buffer, height, width);
    picture.kind = OCTET_PICTURE_INPUT;
    picture.data = buffer;
    picture.height = height;
    picture.width = width;
    const octet_status status = octet_session_run(session, &picture, 1, &result);
    if (status != OCTET_OK) return status;
    const float *logits = octet_result_logits(result, &rows_, &columns_);
    count(logits, rows_ * columns_, outcome);
    const float *boxes = octet_result_boxes(result, &rows_);
    if (boxes != NULL) count(boxes, rows_ * 4, outcome);
    octet_result_free(&result);
    return OCTET_OK;
}
