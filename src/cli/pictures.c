/* SPDX-License-Identifier: Apache-2.0 */
#include "pictures.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

static volatile sig_atomic_t interrupted;

static void on_signal(int signal_number) {
    interrupted = signal_number;
}

static void catch_signals(void) {
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
    sigemptyset(&action.sa_mask);
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
}

bool pictures_interrupted(void) {
    return interrupted != 0;
}

bool pictures_ended(const pictures *p, evaluate_end end, const char *what) {
    const char *verb = p->options->verb;
    if (end == EVALUATE_FAILED && what[0] != '\0')
        fprintf(stderr, "octet %s: %s: %s\n", verb, what, octet_error_text());
    else if (end == EVALUATE_FAILED)
        print_failure(verb);
    if (end == EVALUATE_NO_MEMORY && p->kept.bytes > BESIDE_BYTES)
        fprintf(stderr,
                "octet %s: %s: the first %zu pictures and what the reference says of them take more than %zu MiB\n"
                "  hint: --limit\n",
                verb, p->options->data, p->kept.count, BESIDE_BYTES >> 20);
    else if (end == EVALUATE_NO_MEMORY)
        fprintf(stderr, "octet %s: out of memory\n", verb);
    return end == EVALUATE_DONE;
}

static bool open_model(pictures *p) {
    const pictures_options *o = p->options;
    octet_lab_set_options set = OCTET_LAB_SET_OPTIONS_DEFAULT;
    p->open.threads = (uint32_t)o->common->threads;
    p->open.classes_file = o->classes;
    p->session.threads = (uint32_t)o->common->threads;
    p->session.orientation = o->orientation == 1 ? OCTET_STORED : OCTET_UPRIGHT;
    if (octet_model_open(o->place, &p->open, &p->model) != OCTET_OK) return false;
    set.model = p->model;
    set.classes_file = o->classes;
    return octet_session_new(p->model, &p->session, &p->reference) == OCTET_OK &&
           octet_lab_set_open(o->data, &set, &p->set) == OCTET_OK;
}

static bool fits(const pictures *p) {
    const pictures_options *o = p->options;
    if (octet_lab_is_bundle(p->model)) {
        fprintf(stderr, "octet %s: %s: expected a checkpoint, found a bundle: its recipe is fixed\n", o->verb,
                o->place);
        return false;
    }
    if (octet_lab_set_task(p->set) == octet_model_task(p->model)) return true;
    fprintf(stderr, "octet %s: %s is for %s, %s is not\n", o->verb, o->place,
            octet_model_task(p->model) == OCTET_DETECTION ? "detection" : "classification", o->data);
    return false;
}

static bool on_reference(void *user, size_t done) {
    pictures *p = user;
    progress_update(&p->shown, done);
    return !pictures_interrupted();
}

static size_t total_of(const pictures *p) {
    int64_t count = octet_lab_set_count(p->set), limit = p->options->limit;
    if (limit > 0 && (count < 0 || limit < count)) count = limit;
    return count > 0 ? (size_t)count : 0;
}

bool pictures_open(const pictures_options *options, pictures *out) {
    *out = (pictures){.options = options, .open = OCTET_OPEN_OPTIONS_DEFAULT, .session = OCTET_SESSION_OPTIONS_DEFAULT};
    catch_signals();
    if (!open_model(out)) {
        print_failure(options->verb);
        return false;
    }
    if (!fits(out)) return false;
    out->shown = progress_start("float32", total_of(out), options->common->quiet);
    const evaluate_end end =
        beside_open(out->set, out->reference, (size_t)options->limit, on_reference, out, &out->kept);
    progress_end(&out->shown);
    if (end == EVALUATE_STOPPED) fprintf(stderr, "octet %s: interrupted; nothing was measured\n", options->verb);
    if (!pictures_ended(out, end, out->kept.failed)) return false;
    if (out->kept.count > 0) return true;
    fprintf(stderr, "octet %s: %s: no pictures in it\n", options->verb, options->data);
    return false;
}

void pictures_close(pictures *p) {
    beside_close(&p->kept);
    octet_session_free(&p->reference);
    octet_lab_set_close(&p->set);
    octet_model_close(&p->model);
}
