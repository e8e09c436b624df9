#include "engine/service/detach.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include "engine/base/atomic_file.h"
#include "engine/base/paths.h"
#include "engine/base/process.h"
#include "engine/base/text.h"
#include "engine/config/config_io.h"
#include "engine/store/run_filter.h"
#include "engine/store/store_reader.h"

namespace stacklab {
namespace {

namespace fs = std::filesystem;

constexpr auto look_every = std::chrono::milliseconds(50);
constexpr std::int64_t longest_log = 64 << 20;

// The last line that tells of an error, or else the last that is not empty.
std::string last_words(const fs::path& log, std::uintmax_t from) {
  const Result<std::string> text = read_file(log, longest_log);
  if (!text || text->size() <= from) return {};
  constexpr std::string_view mark = "error: ";
  std::string last, error;
  for (const std::string& line : split(std::string_view(*text).substr(from), '\n')) {
    if (!trim(line).empty()) last = trim(line);
    if (last.starts_with(mark)) error = last.substr(mark.size());
  }
  return error.empty() ? last : error;
}

Error::Kind kind_of(int exit_code) {
  switch (exit_code) {
    case 2:
      return Error::Kind::usage;
    case 3:
      return Error::Kind::refused;
    case 130:
      return Error::Kind::stopped;
    default:
      return Error::Kind::failed;
  }
}

std::optional<RunSummary> stored(const fs::path& workspace, const RunId& id) {
  const auto reader = open_store_reader(workspace);
  if (!reader) return std::nullopt;
  auto run = (*reader)->run(id);
  return run ? std::optional(std::move(*run)) : std::nullopt;
}

// The run that a process trains, whatever its id became on the way: text that is taken in, or a fallback, changes it.
std::optional<RunSummary> trained_by(const fs::path& workspace, int process, bool ended) {
  const auto reader = open_store_reader(workspace);
  if (!reader) return std::nullopt;
  RunQuery query;
  if (!ended)
    if (const auto active = parse_run_filter("state:running or state:stopping")) query.filter = *active;
  const auto runs = (*reader)->runs(query);
  if (!runs) return std::nullopt;
  std::optional<RunSummary> found;
  for (const RunSummary& run : *runs)
    if (run.detached && run.process == process && (!found || found->last_beat < run.last_beat)) found = run;
  return found;
}

// The log belongs beside the run; who writes it does not mind.
void move_log(DetachedRun& run, const fs::path& folder) {
  const fs::path before = run.log.parent_path();
  std::error_code ec;
  if (before == folder) return;
  fs::rename(run.log, folder / run.log.filename(), ec);
  if (ec) return;
  run.log = folder / run.log.filename();
  fs::remove(before, ec);  // only when nothing else is in it
}

}  // namespace

bool is_detached_process() { return std::getenv(detached_variable) != nullptr; }

Result<DetachedRun> start_detached(const fs::path& workspace, const RunConfig& config,
                                   const std::vector<std::string>& words, const std::function<bool()>& give_up) {
  DetachedRun run;
  run.run = config_hash(config);
  run.name = config.name;
  std::string folder = config.name + "-" + run.run;
  if (const auto known = stored(workspace, run.run)) {
    folder = known->folder;
    run.name = known->name;
  }
  std::error_code ec;
  run.log = fs::absolute(workspace, ec) / "runs" / folder / "output.log";
  fs::create_directories(run.log.parent_path(), ec);
  if (ec) return tl::unexpected<Error>(file_error("cannot create the run's folder", run.log.parent_path(), ec.value()));
  const std::uintmax_t before = fs::exists(run.log, ec) ? fs::file_size(run.log, ec) : 0;

  ProcessOptions options;
  options.arguments = {(executable_path().parent_path() / "stacklab").string()};
  options.arguments.insert(options.arguments.end(), words.begin(), words.end());
  options.environment = {{detached_variable, "1"}};
  const Result<int> started = start_process(options, run.log);
  if (!started) return tl::unexpected(started.error());
  run.process = *started;
  for (;;) {
    const std::optional<int> code = reap_process(run.process);
    const auto now = stored(workspace, run.run);
    const auto trained =
        now && now->process == run.process ? now : trained_by(workspace, run.process, code.has_value());
    if (trained) {
      run.run = trained->id;
      run.name = trained->name;
      run.state = trained->state;
      move_log(run, fs::absolute(workspace, ec) / "runs" / trained->folder);
      if (is_active(run.state) || !code || *code == 0) return run;
    }
    if (code) {
      if (*code == 0 && now) {  // nothing was left to do
        run.state = now->state;
        return run;
      }
      const std::string said = last_words(run.log, before);
      return tl::unexpected<Error>({kind_of(*code),
                                    said.empty() ? fmt::format("the detached process ended with code {}", *code) : said,
                                    fmt::format("see {}", run.log.string())});
    }
    if (give_up && give_up())
      return stopped(fmt::format("no longer waiting; process {} goes on, see {}", run.process, run.log.string()));
    std::this_thread::sleep_for(look_every);
  }
}

}  // namespace stacklab
