#include "app/cli/signals.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

#include "engine/base/atomic_file.h"

namespace stacklab::cli {
namespace {

std::atomic<int> received{0};
std::atomic<const char*> lost_text{nullptr};
std::atomic<bool> in_json{false};
std::atomic<std::int64_t> first_at{0};
constexpr std::int64_t one_request_ms = 1000;
constexpr const char* lost_document =
    "{\n  \"error\": \"ended at once: the steps since the last checkpoint are lost\",\n"
    "  \"remedy\": \"go on from the last checkpoint with: stacklab resume\"\n}\n";
constexpr const char* stopped_document = "{\n  \"error\": \"ended at once\",\n  \"remedy\": \"\"\n}\n";
static_assert(std::atomic<int>::is_always_lock_free, "used in a signal handler");

// Milliseconds of the steady clock. May be called by a handler.
std::int64_t now_ms() {
  timespec t{};
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return std::int64_t{t.tv_sec} * 1000 + t.tv_nsec / 1000000;
}

void say(int fd, const char* text) { [[maybe_unused]] const ssize_t n = ::write(fd, text, ::strlen(text)); }

void on_signal(int) {
  const int number_before = received.fetch_add(1);
  if (number_before == 0) {
    first_at = now_ms();
    return;
  }
  // One request comes as several signals where a terminal, a shell and a supervisor all pass it on.
  if (now_ms() - first_at < one_request_ms) return;
  const char* lost = lost_text.load();
  if (lost) say(2, lost);
  if (in_json.load()) say(1, lost ? lost_document : stopped_document);
  ::_exit(lost ? 1 : 130);
}

void handle(int number, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  ::sigaction(number, &action, nullptr);
}

bool ignored(int number) {
  struct sigaction action {};
  return ::sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

void prepare_process() {
  for (int fd = 0; fd <= 2; ++fd)
    if (::fcntl(fd, F_GETFD) < 0) {
      // open takes the lowest free number, which is fd.
      // What is written to a closed output is an error, as on a full disk: nobody is to take it for printed.
      [[maybe_unused]] const int taken = ::open("/dev/null", fd <= 1 ? O_RDONLY : O_WRONLY);
    }
  ::signal(SIGPIPE, SIG_IGN);
  ignore_file_size_signal();
}

void allow_closed_output() {
  const int flags = ::fcntl(STDOUT_FILENO, F_GETFL);
  if (flags < 0 || (flags & O_ACCMODE) != O_RDONLY) return;
  const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (nowhere < 0) return;
  ::dup2(nowhere, STDOUT_FILENO);
  ::close(nowhere);
}

StopSignals::StopSignals(const char* lost) {
  lost_text = lost;
  handle(SIGINT, on_signal);
  handle(SIGTERM, on_signal);
  if (!ignored(SIGHUP)) handle(SIGHUP, on_signal);  // under nohup it stays ignored
}

StopSignals::~StopSignals() {
  handle(SIGINT, SIG_DFL);
  handle(SIGTERM, SIG_DFL);
  if (!ignored(SIGHUP)) handle(SIGHUP, SIG_DFL);
}

void StopSignals::answer_in_json(bool json) { in_json = json; }

bool StopSignals::requested() { return received.load() > 0; }

}  // namespace stacklab::cli
