// Messages for people, on stderr. Results go to stdout; nothing here ever does. Thread-safe.
#pragma once

#include <fmt/core.h>

#include <functional>
#include <string_view>
#include <utility>

namespace stacklab {

enum class LogLevel { debug, info, warning, error, off };

// Messages below the level are dropped. The first level is info; --quiet sets warning.
void set_log_level(LogLevel level);
LogLevel log_level();

// Called before each message that is printed, under the logger's lock: a progress bar clears its line here. Empty:
// none.
void set_log_hook(std::function<void()> before_message);

void log_message(LogLevel level, std::string_view text);

template <class... Args>
void log(LogLevel level, fmt::format_string<Args...> format, Args&&... args) {
  if (level >= log_level()) log_message(level, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void log_debug(fmt::format_string<Args...> format, Args&&... args) {
  log(LogLevel::debug, format, std::forward<Args>(args)...);
}
template <class... Args>
void log_info(fmt::format_string<Args...> format, Args&&... args) {
  log(LogLevel::info, format, std::forward<Args>(args)...);
}
template <class... Args>
void log_warning(fmt::format_string<Args...> format, Args&&... args) {
  log(LogLevel::warning, format, std::forward<Args>(args)...);
}
template <class... Args>
void log_error(fmt::format_string<Args...> format, Args&&... args) {
  log(LogLevel::error, format, std::forward<Args>(args)...);
}

}  // namespace stacklab
