// What makes a run need less memory, in the order in which one should reach for it, each at its price.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "engine/config/run_config.h"

namespace stacklab {

struct Lever {
  std::string_view name;              // loss_chunk, micro_batch, recompute, adam_int8, adam_bf16, sharding
  std::string what;                   // "128 tokens of the loss head at once instead of 512"
  std::vector<std::string> settings;  // as --set takes them; empty: it does not apply
  std::string why_not;                // then
  std::int64_t saved_bytes = 0;       // by it alone
  double more_flops = 0;              // of a step, by it alone: 0.25 is a quarter more
  std::string price;                  // what else it costs; may be empty
  std::int64_t peak_bytes = 0;        // together with those before it that apply
  bool fits = false;                  // together with them
};

struct Levers {
  std::int64_t peak_bytes = 0, budget_bytes = 0;  // of the config as it is
  double flops = 0;                               // of a step of it
  std::vector<Lever> levers;
  // The settings of all levers down to the first with which the run fits; empty: none does, or it fits as it is.
  std::vector<std::string> enough() const;
};

// Each lever goes as far as it must for the run to fit, or as far as it can. Every number is of a plan that was made,
// none is an estimate. config: as check_step() allows it. budget in bytes.
Result<Levers> memory_levers(const RunConfig& config, std::int64_t budget);

// One sentence for each lever that applies, for a refusal.
std::string to_text(const Levers& levers);

}  // namespace stacklab
