#include <nlohmann/json.hpp>

#include "engine/service/job.h"

namespace stacklab {

std::string queue_json(const SubmitOptions& options) {
  return nlohmann::json({{"resume", options.resume},
                         {"max_steps", options.max_steps},
                         {"fallback_corpus", options.fallback_corpus}})
      .dump();
}

SubmitOptions options_of(const std::string& text) {
  SubmitOptions options;
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) return options;
  if (const auto it = json.find("resume"); it != json.end() && it->is_boolean()) options.resume = *it;
  if (const auto it = json.find("max_steps"); it != json.end() && it->is_number_integer()) options.max_steps = *it;
  if (const auto it = json.find("fallback_corpus"); it != json.end() && it->is_string()) options.fallback_corpus = *it;
  return options;
}

}  // namespace stacklab
