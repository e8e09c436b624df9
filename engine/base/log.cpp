#include "engine/base/log.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/ansicolor_sink.h>

#include <atomic>
#include <mutex>

namespace stacklab {
namespace {

std::atomic<LogLevel> current_level{LogLevel::info};

// spdlog formats and colours; the lock is ours so that the hook and its message stay together.
struct Logger {
  std::mutex mutex;
  std::function<void()> before_message;
  spdlog::logger out{"stacklab", std::make_shared<spdlog::sinks::ansicolor_stderr_sink_mt>()};

  Logger() {
    out.set_level(spdlog::level::trace);
    out.flush_on(spdlog::level::trace);
  }
};

// Never destroyed: threads may still speak while the program ends.
Logger& logger() {
  static Logger* instance = new Logger;
  return *instance;
}

}  // namespace

void set_log_level(LogLevel level) { current_level.store(level, std::memory_order_relaxed); }
LogLevel log_level() { return current_level.load(std::memory_order_relaxed); }

void set_log_hook(std::function<void()> before_message) {
  Logger& l = logger();
  std::lock_guard lock(l.mutex);
  l.before_message = std::move(before_message);
}

void log_message(LogLevel level, std::string_view text) {
  if (level == LogLevel::off || level < log_level()) return;
  Logger& l = logger();
  std::lock_guard lock(l.mutex);
  if (l.before_message) l.before_message();
  const spdlog::string_view_t view(text.data(), text.size());
  switch (level) {
    case LogLevel::debug:
      l.out.set_pattern("%^debug:%$ %v");
      l.out.log(spdlog::level::debug, view);
      break;
    case LogLevel::warning:
      l.out.set_pattern("%^warning:%$ %v");
      l.out.log(spdlog::level::warn, view);
      break;
    case LogLevel::error:
      l.out.set_pattern("%^error:%$ %v");
      l.out.log(spdlog::level::err, view);
      break;
    default:
      l.out.set_pattern("%v");
      l.out.log(spdlog::level::info, view);
  }
}

}  // namespace stacklab
