/* SPDX-License-Identifier: Apache-2.0 */
/* What is on a picture, in C++: handles that free themselves, statuses that throw.
 *
 *     c++ -std=c++17 classify.cpp -o classify $(pkg-config --cflags --libs octet)
 *     ./classify MODEL PICTURE... */
#include <octet/octet.h>

#include <cstdio>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

/* A handle is freed by the function that belongs to it. */
struct Free {
    void operator()(octet_model *model) const {
        octet_model_close(&model);
    }
    void operator()(octet_session *session) const {
        octet_session_free(&session);
    }
    void operator()(octet_result *result) const {
        octet_result_free(&result);
    }
};
template <typename T> using Handle = std::unique_ptr<T, Free>;

/* The text belongs to the thread's last call: take it at once. */
void check(octet_status status) {
    if (status != OCTET_OK) throw std::runtime_error(octet_error_text());
}

Handle<octet_model> open_model(const std::string &place) {
    octet_open_options options = OCTET_OPEN_OPTIONS_DEFAULT; /* never without it: it says the struct's size */
    octet_model *model = nullptr;
    check(octet_model_open(place.c_str(), &options, &model));
    return Handle<octet_model>(model);
}

Handle<octet_session> new_session(octet_model *model) {
    octet_session *session = nullptr;
    check(octet_session_new(model, nullptr, &session));
    return Handle<octet_session>(session);
}

Handle<octet_result> run(octet_session *session, const std::string &path) {
    octet_result *result = nullptr;
    check(octet_session_run_file(session, path.c_str(), &result));
    return Handle<octet_result>(result);
}

std::vector<octet_class> top(const octet_result *result, std::size_t count) {
    std::vector<octet_class> classes(count);
    classes.resize(octet_result_top(result, classes.data(), count));
    return classes;
}

} // namespace

int main(int argc, char **argv) {
    if (argc < 3) {
        std::fprintf(stderr, "usage: %s MODEL PICTURE...\n", argv[0]);
        return 2;
    }
    try {
        auto model = open_model(argv[1]);
        auto session = new_session(model.get());
        for (int i = 2; i < argc; i++) {
            auto result = run(session.get(), argv[i]);
            for (const octet_class &found : top(result.get(), 5))
                std::printf("%6.2f%%  %s\n", 100.0 * static_cast<double>(found.probability), found.label);
        }
    } catch (const std::exception &failure) {
        std::fprintf(stderr, "%s\n", failure.what());
        return 1;
    }
    return 0;
}
