// Work beside the terminal: Ctrl-C is noticed and progress shown meanwhile.
#pragma once

#include <chrono>
#include <functional>
#include <future>
#include <mutex>
#include <stop_token>
#include <string>
#include <utility>

#include "app/cli/progress.h"
#include "app/cli/signals.h"
#include "engine/service/data_builds.h"

namespace stacklab::cli {

using ReportProgress = std::function<void(Progress progress)>;

inline CorpusProgress shown_as(const char* phase, const ReportProgress& report) {
  return [phase, &report](std::string_view detail, std::int64_t done, std::int64_t total) {
    report({phase, std::string(detail), done, total});
  };
}

// What work(report, stop) gives, which runs in a thread of its own.
template <class Work>
auto run_beside(const std::string& title, bool quiet, Progress first, const Work& work) {
  const StopSignals signals;
  std::stop_source stop;
  std::mutex mutex;
  Progress latest = std::move(first);
  const ReportProgress report = [&](Progress progress) {
    const std::lock_guard lock(mutex);
    latest = std::move(progress);
  };
  auto result = std::async(std::launch::async, [&] { return work(report, stop.get_token()); });
  ProgressDisplay display(title, quiet);
  while (result.wait_for(std::chrono::milliseconds(100)) != std::future_status::ready) {
    if (StopSignals::requested()) stop.request_stop();
    Progress now;
    {
      const std::lock_guard lock(mutex);
      now = latest;
    }
    display.show(now, {});
  }
  return result.get();
}

}  // namespace stacklab::cli
