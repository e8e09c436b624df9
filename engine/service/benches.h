// Measurements of this computer, as app/ sees them: the bench room's own, through the service's door.
#pragma once

#include "engine/bench/attention.h"
#include "engine/bench/gemm.h"
#include "engine/bench/gemm_rate.h"
#include "engine/bench/tokenizer.h"
#include "engine/bench/train.h"
#include "engine/service/bench_store.h"
