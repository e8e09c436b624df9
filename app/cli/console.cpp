#include "app/cli/console.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "engine/base/json_writer.h"
#include "engine/base/log.h"

namespace stacklab::cli {
namespace {

std::size_t shown_width(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

}  // namespace

void Console::configure(bool json, bool quiet) {
  json_ = json;
  quiet_ = quiet;
  set_log_level(quiet ? LogLevel::warning : LogLevel::info);
}

// Straight to the descriptor: nothing waits in a buffer when the program ends early.
void Console::write(std::string_view text) {
  while (!text.empty() && failed_with_ == 0) {
    const ssize_t n = ::write(STDOUT_FILENO, text.data(), text.size());
    if (n >= 0)
      text.remove_prefix(static_cast<std::size_t>(n));
    else if (errno != EINTR)
      failed_with_ = errno;
  }
}

void Console::print(std::string_view text) {
  if (!json_) write(text);
}

void Console::print_json(std::string_view text) {
  if (!json_) return;
  document_printed_ = true;
  write(text);
  write("\n");
}

void Console::note(std::string_view line) {
  if (!quiet_) log_message(LogLevel::info, line);
}

void Console::warn(std::string_view line) { log_message(LogLevel::warning, line); }

void Console::report(const Error& error) {
  // A stop that the user asked for is no fault.
  if (error.kind == Error::Kind::stopped)
    note(error.message());
  else
    log_message(LogLevel::error, error.message());
  if (!json_ || document_printed_) return;
  JsonWriter w(2);
  w.begin_object();
  w.member("error", error.what);
  w.member("remedy", error.remedy);
  w.end_object();
  print_json(w.text());
}

Status Console::finish() {
  if (failed_with_ == 0 || failed_with_ == EPIPE) return {};
  return failed(fmt::format("cannot write to standard output: {}", std::strerror(failed_with_)));
}

std::string table(const std::vector<std::vector<std::string>>& rows, const std::vector<bool>& right) {
  std::vector<std::size_t> width(right.size(), 0);
  for (const auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) width[i] = std::max(width[i], shown_width(row[i]));
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string padding(width[i] - shown_width(row[i]), ' ');
      line += (i > 0 ? "  " : "") + (right[i] ? padding + row[i] : row[i] + padding);
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

}  // namespace stacklab::cli
