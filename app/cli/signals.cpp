#include "app/cli/signals.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <atomic>

#include "engine/base/atomic_file.h"

namespace stacklab::cli {
namespace {

std::atomic<int> received{0};
std::atomic<const char*> lost_text{nullptr};
static_assert(std::atomic<int>::is_always_lock_free, "used in a signal handler");

void on_signal(int number) {
  if (received.fetch_add(1) == 0) return;
  if (const char* text = lost_text.load()) {
    [[maybe_unused]] const ssize_t n = ::write(2, text, ::strlen(text));
  }
  ::signal(number, SIG_DFL);
  ::raise(number);  // delivered when the handler returns
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
      [[maybe_unused]] const int taken = ::open("/dev/null", fd == 0 ? O_RDONLY : O_WRONLY);
    }
  ::signal(SIGPIPE, SIG_IGN);
  ignore_file_size_signal();
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

bool StopSignals::requested() { return received.load() > 0; }

}  // namespace stacklab::cli
