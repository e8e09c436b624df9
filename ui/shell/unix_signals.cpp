#include "ui/shell/unix_signals.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <QSocketNotifier>

namespace stacklab::ui {
namespace {

int pipe_ends[2] = {-1, -1};

// Only what is safe in a signal handler: one byte into the pipe.
void wake(int) {
  const char byte = 1;
  [[maybe_unused]] const auto written = ::write(pipe_ends[1], &byte, 1);
}

}  // namespace

UnixSignals::UnixSignals(QObject* parent) : QObject(parent) {
  if (::pipe2(pipe_ends, O_CLOEXEC | O_NONBLOCK) != 0) return;
  notifier_ = new QSocketNotifier(pipe_ends[0], QSocketNotifier::Read, this);
  connect(notifier_, &QSocketNotifier::activated, this, [this] {
    char bytes[16];
    while (::read(pipe_ends[0], bytes, sizeof bytes) > 0) {
    }
    emit quit_requested();
  });
  struct sigaction action = {};
  action.sa_handler = wake;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
}

UnixSignals::~UnixSignals() {
  if (!notifier_) return;
  ::signal(SIGINT, SIG_DFL);
  ::signal(SIGTERM, SIG_DFL);
  delete notifier_;
  ::close(pipe_ends[0]);
  ::close(pipe_ends[1]);
  pipe_ends[0] = pipe_ends[1] = -1;
}

}  // namespace stacklab::ui

#include <moc_unix_signals.cpp>
