/* SPDX-License-Identifier: Apache-2.0 */
/* octet(1): a verb a file. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "octet/octet.h"
#include "options.h"
#include "output.h"

static const verb_row *const verbs[] = {&verb_pull,   &verb_inspect, &verb_calibrate, &verb_build,
                                        &verb_run,    &verb_eval,    &verb_attribute, &verb_bench,
                                        &verb_search, &verb_check,   &verb_study};
#define VERB_COUNT (sizeof verbs / sizeof verbs[0])

static void print_usage(FILE *stream) {
    fprintf(stream, "octet %s: vision models from Hugging Face checkpoints, run in C\n\n", octet_version());
    for (size_t i = 0; i < VERB_COUNT; i++) {
        fprintf(stream, "  octet %-10s %-34s %s\n", verbs[i]->name, verbs[i]->arguments, verbs[i]->summary);
    }
    fprintf(stream, "\nMODEL is a bundle (.octet), a checkpoint directory or a hub id in the local cache.\n"
                    "octet VERB --help says more. Exit: 0 done, 1 bad input or failure, 2 usage, 3 a check found "
                    "something wrong.\n");
}

/* A closed standard stream would be the next file opened: what is printed would land in a picture. Such a stream takes
 * /dev/null the wrong way round, so that using it fails as before. */
static void keep_streams(void) {
    for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; stream++) {
        if (fcntl(stream, F_GETFD) != -1 || errno != EBADF) continue;
        if (open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY) != stream) return;
    }
}

int main(int count, char **words) {
    keep_streams();
    signal(SIGPIPE, SIG_IGN); /* a closed pipe is a failed write, said as such */
    if (count < 2) {
        print_usage(stderr);
        return EXIT_USAGE;
    }
    if (strcmp(words[1], "--help") == 0 || strcmp(words[1], "-h") == 0 || strcmp(words[1], "help") == 0) {
        print_usage(stdout);
        return finish_output("help", EXIT_DONE);
    }
    if (strcmp(words[1], "--version") == 0) {
        printf("octet %s\n", octet_version());
        return finish_output("--version", EXIT_DONE);
    }
    for (size_t i = 0; i < VERB_COUNT; i++) {
        if (strcmp(words[1], verbs[i]->name) != 0) continue;
        print_warnings();
        return finish_output(verbs[i]->name, verbs[i]->run(count - 2, words + 2));
    }
    fprintf(stderr, "octet: unknown verb \"%s\"\n  hint: octet --help\n", words[1]);
    return EXIT_USAGE;
}
