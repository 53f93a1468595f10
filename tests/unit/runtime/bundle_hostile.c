/* SPDX-License-Identifier: Apache-2.0 */
/* Bundles whose checksums are right and whose contents are wrong: one defect an entry, refused with the text beside it.
 */
#include "bundle_parts.h"

static void text_gone(bundle_parts *p) {
    p->model = replaced(p->model, "\"classes\"", "\"klasses\"");
}
static void classes_many(bundle_parts *p) {
    p->model = replaced(p->model, "\"classes\": 2", "\"classes\": 3");
}
static void classes_huge(bundle_parts *p) {
    p->model = replaced(p->model, "\"classes\": 2", "\"classes\": 4000000000");
}
static void tokens_none(bundle_parts *p) {
    p->model = replaced(p->model, "\"tokens\": 3", "\"tokens\": 0");
}
static void tokens_more(bundle_parts *p) {
    p->model = replaced(p->model, "\"tokens\": 3", "\"tokens\": 4");
}
static void task_other(bundle_parts *p) {
    p->model = replaced(p->model, "\"detection\"", "\"segmentation\"");
}
static void std_zero(bundle_parts *p) {
    p->model = replaced(p->model, "\"std\": [0.229", "\"std\": [0");
}
static void filter_unknown(bundle_parts *p) {
    p->model = replaced(p->model, "bilinear", "bipolar");
}
static void json_broken(bundle_parts *p) {
    p->model = replaced(p->model, "{", "[");
}
static void provenance_broken(bundle_parts *p) {
    p->provenance = replaced(p->provenance, "{", "[");
}
static void fingerprint_short(bundle_parts *p) {
    p->provenance = replaced(p->provenance, "\"fingerprint\": \"", "\"fingerprint\": \"0");
}
static void labels_few(bundle_parts *p) {
    p->labels = replaced(p->labels, ",\n \"class 1\"", "");
}
static void labels_numbers(bundle_parts *p) {
    p->labels = replaced(p->labels, "\"class 1\"", "1");
}
static void plan_name_other_size(bundle_parts *p) {
    strcpy(p->plan_name, "cpu-fp32-b1-64x64");
}
static void plan_name_other_batch(bundle_parts *p) {
    strcpy(p->plan_name, "cpu-fp32-b4-32x48");
}
static void plan_name_other_device(bundle_parts *p) {
    strcpy(p->plan_name, "tpu-fp32-b1-32x48");
}
static void plan_cut(bundle_parts *p) {
    p->plan_cut = 3;
}
static void plan_garbage(bundle_parts *p) {
    p->garbage_plan = true;
}
static void plan_missing(bundle_parts *p) {
    p->without_plan = true;
}
static void plan_twice(bundle_parts *p) {
    p->plan_twice = true;
}
static void weights_missing(bundle_parts *p) {
    p->without_weights = true;
}
static void weights_nan(bundle_parts *p) {
    p->weights->items[0].data[1] = (float)NAN;
}
static void weights_other_shape(bundle_parts *p) {
    p->weights->items[0].shape.dims[0] -= 1;
}
static void kind_unknown(bundle_parts *p) {
    p->unknown_kind = true;
}
static void backend_other(bundle_parts *p) {
    p->plan->backend = "npu";
}
static void kernel_unknown(bundle_parts *p) {
    p->plan->steps[0].tactic = "conv2d_by_magic";
}
static void kernel_of_other_op(bundle_parts *p) {
    p->plan->steps[0].tactic = "layer_norm_f32_c";
}
static void steps_reversed(bundle_parts *p) {
    oct_plan_step first = p->plan->steps[0];
    p->plan->steps[0] = p->plan->steps[p->plan->step_count - 1];
    p->plan->steps[p->plan->step_count - 1] = first;
}
static void step_reads_itself(bundle_parts *p) {
    p->plan->steps[0].inputs[0].index = p->plan->steps[0].output;
}
static void constant_beyond(bundle_parts *p) {
    p->plan->steps[0].inputs[1].index = 100000;
}
static void tensor_beyond(bundle_parts *p) {
    p->plan->steps[0].output = -7;
}
static void offset_beyond(bundle_parts *p) {
    p->plan->tensors[p->plan->steps[0].output].offset = UINT64_MAX - 63;
}
static void offset_odd(bundle_parts *p) {
    p->plan->tensors[p->plan->steps[0].output].offset += 4;
}
static void size_wrong(bundle_parts *p) {
    p->plan->tensors[p->plan->steps[0].output].size += 64;
}
static void shape_negative(bundle_parts *p) {
    p->plan->tensors[p->plan->steps[0].output].shape.dims[1] = -1;
}
static void shape_huge(bundle_parts *p) {
    p->plan->tensors[p->plan->steps[0].output].shape.dims[1] = INT64_MAX;
}
static void stride_zero(bundle_parts *p) {
    p->plan->tensors[p->plan->steps[0].output].form.channel_stride = 0;
}
static void stride_conv(bundle_parts *p) {
    p->plan->steps[0].attributes.stride_h = 0;
}
static void padding_huge(bundle_parts *p) {
    p->plan->steps[0].attributes.pad_top = INT32_MAX;
}
static void groups_negative(bundle_parts *p) {
    p->plan->steps[0].attributes.groups = -1;
}
static void arena_huge(bundle_parts *p) {
    p->plan->arena_size = (uint64_t)1 << 62;
}
static void arena_small(bundle_parts *p) {
    p->plan->arena_size = 64;
}
static void batch_other(bundle_parts *p) {
    p->plan->batch = 2;
}
static void output_none(bundle_parts *p) {
    p->plan->output_count = 0;
}
static void output_renamed(bundle_parts *p) {
    p->plan->tensors[p->plan->outputs[0]].name = "other";
}

/* `says`: a part of the text that must come. */
static const struct {
    const char *name, *says;
    void (*damage)(bundle_parts *);
} defects[] = {
    {"a field is missing", "classes", text_gone},
    {"more classes than outputs", "labels for 3 classes", classes_many},
    {"classes beyond any limit", "classes", classes_huge},
    {"a detector without tokens", "tokens", tokens_none},
    {"more tokens than outputs", "expected [1, 4, 3]", tokens_more},
    {"a task nobody knows", "segmentation", task_other},
    {"a deviation of zero", "std above 0", std_zero},
    {"a filter nobody knows", "bipolar", filter_unknown},
    {"JSON that is none", "model", json_broken},
    {"provenance that is no JSON", "provenance", provenance_broken},
    {"a fingerprint of another length", "64 hexadecimal", fingerprint_short},
    {"too few labels", "1 labels for 2 classes", labels_few},
    {"labels that are numbers", "expected a string", labels_numbers},
    {"a plan named for another size", "input", plan_name_other_size},
    {"a plan named for another batch", "holds batch 1", plan_name_other_batch},
    {"no plan for this device", "no engine for device cpu", plan_name_other_device},
    {"a plan cut short", "cpu-fp32-b1-32x48", plan_cut},
    {"a plan of 0xff", "cpu-fp32-b1-32x48", plan_garbage},
    {"no plan at all", "no engine", plan_missing},
    {"two plans of one name", "stands twice", plan_twice},
    {"no weights", "weights", weights_missing},
    {"a weight that is NaN", "is not finite", weights_nan},
    {"weights smaller than the steps need", "cpu-fp32-b1-32x48", weights_other_shape},
    {"a section kind nobody knows", "script", kind_unknown},
    {"a plan for another backend", "npu", backend_other},
    {"an unknown kernel", "conv2d_by_magic", kernel_unknown},
    {"a kernel of another op", "layer_norm_f32_c", kernel_of_other_op},
    {"steps out of order", "step ", steps_reversed},
    {"a step that reads its own output", "projection", step_reads_itself},
    {"a constant that is not there", "100000", constant_beyond},
    {"an output tensor below zero", "-7", tensor_beyond},
    {"an offset beyond the arena", "arena", offset_beyond},
    {"an offset between lines", "multiple", offset_odd},
    {"a size that does not fit its shape", "bytes", size_wrong},
    {"a negative dimension", "shape", shape_negative},
    {"a dimension beyond memory", "shape", shape_huge},
    {"a channel stride of zero", "stride", stride_zero},
    {"a convolution that does not move", "stride", stride_conv},
    {"padding beyond reason", "output shape", padding_huge},
    {"a negative number of groups", "groups", groups_negative},
    {"an arena beyond memory", "arena", arena_huge},
    {"an arena too small", "arena", arena_small},
    {"a plan of another batch", "batch", batch_other},
    {"no outputs", "output", output_none},
    {"an output under another name", "output", output_renamed},
};

static void refuses_hostile_contents(void **state) {
    const char *directory = *state;
    char *path = oct_path_join(directory, "hostile.octet");
    int wrong = 0;
    for (size_t i = 0; i < sizeof defects / sizeof defects[0]; i++) {
        bundle_parts parts;
        octet_model *model = NULL;
        parts_take(&parts, FIXTURE);
        defects[i].damage(&parts);
        parts_write(&parts, path);
        octet_status status = octet_model_open(path, NULL, &model);
        if (status == OCTET_OK || model != NULL || strstr(octet_error_text(), defects[i].says) == NULL) {
            print_error("%s: expected \"%s\", found \"%s\"\n", defects[i].name, defects[i].says,
                        status == OCTET_OK ? "no error" : octet_error_text());
            wrong++;
        }
        octet_model_close(&model);
        parts_free(&parts);
    }
    oct_free(path);
    assert_int_equal(wrong, 0);
}

/* What takes apart and puts together gives the model back: the list above would prove nothing otherwise. */
static void opens_unharmed(void **state) {
    char *path = oct_path_join(*state, "unharmed.octet");
    bundle_parts parts;
    octet_model *model;
    parts_take(&parts, FIXTURE);
    parts_write(&parts, path);
    if (octet_model_open(path, NULL, &model) != OCTET_OK) fail_msg("%s", octet_error_text());
    octet_model_close(&model);
    parts_free(&parts);
    oct_free(path);
}

static int set_up(void **state) {
    *state = support_temporary_directory();
    return 0;
}

static int tear_down(void **state) {
    support_remove_tree(*state);
    free(*state);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(opens_unharmed), cmocka_unit_test(refuses_hostile_contents)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
