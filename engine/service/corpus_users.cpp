#include "engine/service/corpus_users.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/config/config_io.h"
#include "engine/service/run_data.h"
#include "engine/store/store_reader.h"

namespace stacklab {
namespace {

// A config that cannot be read, of a newer version perhaps, names nothing.
bool reads(const std::string& config_json, std::string_view corpus) {
  const auto config = parse_config(config_json, "a stored config");
  if (!config) return false;
  const auto mixture = mixture_of(config->data);
  return mixture && std::any_of(mixture->begin(), mixture->end(), [&](const auto& p) { return p.name == corpus; });
}

}  // namespace

Result<CorpusUsers> users_of_corpus(std::string_view name, const std::filesystem::path& workspace) {
  CorpusUsers users;
  std::error_code ec;
  if (!std::filesystem::exists(workspace / "stacklab.db", ec)) return users;
  const auto reader = open_store_reader(workspace);
  if (!reader) return tl::unexpected(reader.error());
  const auto runs = (*reader)->runs();
  if (!runs) return tl::unexpected(runs.error());
  for (const RunSummary& run : *runs) {
    if (run.deleted > 0 || !reads(run.config_json, name)) continue;
    const bool ended = run.state == RunState::finished || run.state == RunState::failed;
    (ended ? users.to_replay : users.to_go_on)
        .push_back(fmt::format("{} ({}), {}", run.name, run.id, to_string(run.state)));
  }
  const auto queue = (*reader)->queue();
  if (!queue) return tl::unexpected(queue.error());
  for (const QueueEntry& entry : *queue) {
    const bool known = std::any_of(runs->begin(), runs->end(), [&](const RunSummary& r) { return r.id == entry.run; });
    if (!known && reads(entry.config_json, name))
      users.to_go_on.push_back(fmt::format("{} ({}), queued", entry.name, entry.run));
  }
  return users;
}

}  // namespace stacklab
