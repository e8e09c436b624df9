// The verbs below `stacklab bench`.
#pragma once

#include "app/cli/verb.h"

namespace stacklab::cli {

Verb bench_store_verb();
Verb bench_tokenizer_verb();
Verb bench_train_verb();

}  // namespace stacklab::cli
