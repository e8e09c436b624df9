#include "app/cli/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "engine/base/log.h"
#include "engine/base/text.h"

namespace stacklab::cli {
namespace {

constexpr std::chrono::seconds between_plain_lines{10};
constexpr std::string_view clear_line = "\r\x1b[K";

bool on_a_terminal() {
  const char* kind = std::getenv("TERM");
  return ::isatty(STDERR_FILENO) == 1 && kind != nullptr && std::string_view(kind) != "dumb" && *kind != '\0';
}

int terminal_columns() {
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

void put(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

// Cut to a number of columns, not in the middle of a character.
std::string fit(const std::string& text, int columns) {
  std::string out;
  int used = 0;
  for (const char c : text) {
    if ((static_cast<unsigned char>(c) & 0xC0) != 0x80 && ++used > columns) break;
    out += c;
  }
  return out;
}

double fraction(const Progress& p) {
  return p.total > 0 ? std::clamp(static_cast<double>(p.done) / static_cast<double>(p.total), 0.0, 1.0) : 0.0;
}

// Bytes and documents are counted for people; steps in full.
std::string amount(const Progress& p) {
  if (p.total <= 0) return p.done > 0 ? format_count(static_cast<double>(p.done)) : "";
  if (p.total >= 1'000'000)
    return fmt::format("{} of {}", format_count(static_cast<double>(p.done)),
                       format_count(static_cast<double>(p.total)));
  return fmt::format("{}/{}", p.done, p.total);
}

}  // namespace

ProgressDisplay::ProgressDisplay(std::string title, bool quiet)
    : title_(std::move(title)), quiet_(quiet), terminal_(on_a_terminal()) {
  if (terminal_ && !quiet_) set_log_hook([] { put(clear_line); });
}

ProgressDisplay::~ProgressDisplay() {
  if (!terminal_ || quiet_) return;
  set_log_hook({});
  put(clear_line);
}

void ProgressDisplay::follow(const Progress& p) {
  const auto now = Clock::now();
  if (p.phase != phase_ || p.done < done_) {
    phase_ = p.phase;
    phase_began_ = last_change_ = now;
    done_at_begin_ = done_ = p.done;
  } else if (p.done != done_) {
    done_ = p.done;
    last_change_ = now;
  }
}

// From the pace up to the last change: between changes the time left runs down instead of growing.
std::string ProgressDisplay::time_left(const Progress& p) const {
  const std::int64_t since = p.done - done_at_begin_;
  if (p.total <= p.done || since <= 0) return "";
  const auto seconds = [](Clock::duration d) { return std::chrono::duration<double>(d).count(); };
  const double each = seconds(last_change_ - phase_began_) / static_cast<double>(since);
  const double left = each * static_cast<double>(p.total - p.done) - seconds(Clock::now() - last_change_);
  return format_duration(std::max(left, 0.0)) + " left";
}

std::string ProgressDisplay::bar_line(const Progress& p, const std::string& figures, int columns) const {
  std::string left = fmt::format("{}  {}", title_, p.phase), right;
  if (p.total > 0) right = fmt::format(" {:3.0f} %  {}", 100 * fraction(p), amount(p));
  for (const std::string& more : {figures.empty() ? p.detail : figures, time_left(p)})
    if (!more.empty()) right += "  " + more;
  constexpr int widest = 30, narrowest = 5;
  const int room = columns - 1 - static_cast<int>(left.size() + right.size()) - 4;
  if (p.total > 0 && room >= narrowest) {
    const int width = std::min(widest, room), full = static_cast<int>(fraction(p) * width);
    left += fmt::format("  [{}{}]", std::string(static_cast<std::size_t>(full), '='),
                        std::string(static_cast<std::size_t>(width - full), ' '));
  }
  return fit(left + right, columns - 1);
}

std::string ProgressDisplay::plain_line(const Progress& p, const std::string& figures) const {
  std::string line = fmt::format("{}: {}", title_, p.phase);
  if (p.total > 0 && p.done > 0) line += " " + amount(p);
  for (const std::string& more : {p.detail, figures, time_left(p)})
    if (!more.empty()) line += ", " + more;
  return line;
}

void ProgressDisplay::show(const Progress& p, const std::string& figures) {
  if (quiet_ || p.phase.empty()) return;
  const bool new_phase = p.phase != phase_;
  const bool new_detail = p.detail != detail_;
  detail_ = p.detail;
  follow(p);
  if (terminal_) {
    put(std::string(clear_line) + bar_line(p, figures, terminal_columns()));
    return;
  }
  const auto now = Clock::now();
  if (any_line_ && !new_phase && !new_detail && now - last_line_ < between_plain_lines) return;
  any_line_ = true;
  last_line_ = now;
  log_message(LogLevel::info, plain_line(p, figures));
}

}  // namespace stacklab::cli
