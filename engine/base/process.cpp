#include "engine/base/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <utility>

extern char** environ;

namespace stacklab {
namespace {

using Clock = std::chrono::steady_clock;

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() { close(); }
  void close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }
  int get() const { return fd_; }

 private:
  int fd_ = -1;
};

struct Pipe {
  Descriptor read, write;
  static std::optional<Pipe> make() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return std::nullopt;
    ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
    return Pipe{Descriptor(ends[0]), Descriptor(ends[1])};
  }
};

// Reads what is there. Closes the pipe at its end.
void drain(Descriptor& pipe, std::string& into, ProcessResult& result, std::size_t limit) {
  char buffer[65536];
  while (pipe.get() >= 0) {
    const ssize_t n = ::read(pipe.get(), buffer, sizeof buffer);
    if (n > 0) {
      const std::size_t kept = std::min(static_cast<std::size_t>(n), limit - std::min(limit, into.size()));
      into.append(buffer, kept);
      result.truncated |= kept < static_cast<std::size_t>(n);
    } else if (n < 0 && errno == EINTR) {
      continue;
    } else {
      if (n == 0 || errno != EAGAIN) pipe.close();
      return;
    }
  }
}

std::vector<std::string> merged_environment(const std::vector<std::pair<std::string, std::string>>& added) {
  std::vector<std::string> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view variable = *entry;
    const std::string_view name = variable.substr(0, variable.find('='));
    if (std::none_of(added.begin(), added.end(), [name](const auto& a) { return a.first == name; }))
      variables.emplace_back(variable);
  }
  for (const auto& [name, value] : added) variables.push_back(name + "=" + value);
  return variables;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> out;
  for (std::string& s : strings) out.push_back(s.data());
  out.push_back(nullptr);
  return out;
}

// 0 or the error number.
int spawn(const ProcessOptions& options, int output, int errors, bool session, pid_t& pid) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output, 1);
  posix_spawn_file_actions_adddup2(&actions, errors, 2);
  if (!options.folder.empty()) posix_spawn_file_actions_addchdir_np(&actions, options.folder.c_str());
  // A group of its own, so that all of it can be ended; signals as a fresh program expects them.
  sigset_t none, defaults;
  sigemptyset(&none);
  sigemptyset(&defaults);
  for (const int signal : {SIGPIPE, SIGXFSZ, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD}) sigaddset(&defaults, signal);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  const int own = session ? POSIX_SPAWN_SETSID : POSIX_SPAWN_SETPGROUP;
  posix_spawnattr_setflags(&attributes, static_cast<short>(own | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF));

  std::vector<std::string> arguments = options.arguments;
  std::vector<std::string> environment = merged_environment(options.environment);
  const int code = ::posix_spawnp(&pid, arguments[0].c_str(), &actions, &attributes, pointers(arguments).data(),
                                  pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  return code;
}

std::optional<int> reap(pid_t pid) {
  int status = 0;
  pid_t got;
  do got = ::waitpid(pid, &status, WNOHANG);
  while (got < 0 && errno == EINTR);
  if (got == 0) return std::nullopt;
  if (got < 0) return 0;  // somebody else waited for it
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

std::optional<int> reap_process(int pid) { return reap(pid); }

Result<int> start_process(const ProcessOptions& options, const std::filesystem::path& log) {
  if (options.arguments.empty() || options.arguments[0].empty()) return failed("no program to run was named");
  const Descriptor out(::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (out.get() < 0) return failed(fmt::format("cannot write {}: {}", log.string(), std::strerror(errno)));
  pid_t pid = -1;
  if (const int code = spawn(options, out.get(), out.get(), true, pid); code != 0)
    return failed(fmt::format("cannot run {}: {}", options.arguments[0], std::strerror(code)));
  return static_cast<int>(pid);
}

Result<ProcessResult> run_process(const ProcessOptions& options, std::stop_token stop) {
  if (options.arguments.empty() || options.arguments[0].empty()) return failed("no program to run was named");
  const std::string& program = options.arguments[0];
  if (stop.stop_requested()) return stopped(fmt::format("{}: stopped before it began", program));

  std::optional<Pipe> output = Pipe::make(), errors = Pipe::make();
  const Descriptor wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!output || !errors || wake.get() < 0)
    return failed(fmt::format("cannot run {}: {}", program, std::strerror(errno)),
                  "too many files are open: see ulimit -n");

  pid_t pid = -1;
  if (const int code = spawn(options, output->write.get(), errors->write.get(), false, pid); code != 0) {
    // The same error number stands for a missing program and for a missing folder.
    if (code == ENOENT && !options.folder.empty() && !std::filesystem::is_directory(options.folder))
      return failed(fmt::format("cannot run {} in {}: there is no such folder", program, options.folder.string()));
    return failed(fmt::format("cannot run {}: {}", program, std::strerror(code)),
                  code == ENOENT ? "install it, or check PATH" : "");
  }
  output->write.close();
  errors->write.close();
  // Readable when the program has ended, even if a grandchild keeps the pipes open.
  const Descriptor ended(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  std::stop_callback on_stop(stop, [&wake] {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t n = ::write(wake.get(), &one, sizeof one);
  });

  ProcessResult result;
  enum class Ending { none, timed_out, stopped } ending = Ending::none;
  std::optional<Clock::time_point> deadline, kill_at;
  if (options.timeout_seconds > 0)
    deadline = Clock::now() +
               std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options.timeout_seconds));
  for (;;) {
    drain(output->read, result.output, result, options.output_limit);
    drain(errors->read, result.errors, result, options.output_limit);
    if (const std::optional<int> code = reap(pid)) {
      result.exit_code = *code;
      break;
    }
    const auto now = Clock::now();
    if (ending == Ending::none) {
      if (stop.stop_requested()) ending = Ending::stopped;
      if (deadline && now >= *deadline) ending = Ending::timed_out;
      if (ending != Ending::none) {
        ::kill(-pid, SIGTERM);
        kill_at = now + std::chrono::seconds(2);
        deadline.reset();
      }
    } else if (kill_at && now >= *kill_at) {
      ::kill(-pid, SIGKILL);
      kill_at.reset();
    }
    // Without pidfd_open (old kernels) the end is found by asking.
    std::int64_t wait_ms = ended.get() >= 0 ? -1 : 20;
    if (options.meanwhile) {
      options.meanwhile();
      wait_ms = wait_ms < 0 ? 250 : std::min<std::int64_t>(wait_ms, 250);
    }
    for (const auto& moment : {deadline, kill_at}) {
      if (!moment) continue;
      const std::int64_t left = std::chrono::ceil<std::chrono::milliseconds>(*moment - now).count();
      wait_ms = wait_ms < 0 ? left : std::min(wait_ms, left);
    }
    pollfd watched[] = {{output->read.get(), POLLIN, 0},
                        {errors->read.get(), POLLIN, 0},
                        {ended.get(), POLLIN, 0},
                        {ending == Ending::none ? wake.get() : -1, POLLIN, 0}};
    ::poll(watched, 4, static_cast<int>(std::clamp<std::int64_t>(wait_ms, -1, 1 << 30)));
  }
  drain(output->read, result.output, result, options.output_limit);
  drain(errors->read, result.errors, result, options.output_limit);
  if (ending != Ending::none) ::kill(-pid, SIGKILL);  // what is left of the group
  if (ending == Ending::stopped) return stopped(fmt::format("{}: stopped", program));
  if (ending == Ending::timed_out)
    return failed(fmt::format("{}: no end after {} s", program, options.timeout_seconds));
  return result;
}

}  // namespace stacklab
