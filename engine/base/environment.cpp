#include "engine/base/environment.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <gnu/libc-version.h>
#include <openssl/crypto.h>
#include <sched.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <limits>
#include <thread>

#include "engine/base/sha256.h"
#include "engine/base/text.h"

namespace stacklab {
namespace fs = std::filesystem;
namespace {

// Small files of /proc and /sys; empty when missing.
std::string slurp(const fs::path& file) {
  std::string text;
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return text;
  char buffer[16384];
  for (ssize_t n; (n = ::read(fd, buffer, sizeof buffer)) > 0 || (n < 0 && errno == EINTR);)
    if (n > 0) text.append(buffer, static_cast<std::size_t>(n));
  ::close(fd);
  return text;
}

// The rest of the first line that starts with key.
std::optional<std::string> line_after(const std::string& text, std::string_view key) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = std::string_view(text).substr(at, end - at);
    if (line.starts_with(key)) return std::string(trim(line.substr(key.size())));
    at = end + 1;
  }
  return std::nullopt;
}

// "16307708 kB" -> bytes; -1 when missing.
std::int64_t kilobytes(const std::string& text, std::string_view key) {
  const std::optional<std::string> value = line_after(text, key);
  if (!value) return -1;
  const std::optional<std::int64_t> number = parse_int(std::string_view(*value).substr(0, value->find(' ')));
  return number ? *number * 1024 : -1;
}

std::int64_t number_in(const fs::path& file) { return parse_int(trim(slurp(file))).value_or(-1); }

// The folders of this process's control group for a controller ("" is version 2), from its own up to the root.
std::vector<fs::path> control_groups(std::string_view controller) {
  std::vector<fs::path> folders;
  for (const std::string& line : split(slurp("/proc/self/cgroup"), '\n')) {
    const std::vector<std::string> part = split(line, ':');  // number : controllers : path
    if (part.size() < 3) continue;
    const std::vector<std::string> names = split(part[1], ',');
    if (std::find(names.begin(), names.end(), controller) == names.end()) continue;
    const fs::path root =
        controller.empty() ? fs::path("/sys/fs/cgroup") : fs::path("/sys/fs/cgroup") / std::string(controller);
    for (fs::path inside = fs::path(part[2]).relative_path(); !inside.empty(); inside = inside.parent_path())
      folders.push_back(root / inside);
    folders.push_back(root);
  }
  return folders;
}

struct StatFields {
  char state = '?';
  std::uint64_t start_ticks = 0;
};

std::optional<StatFields> process_stat(int pid) {
  const std::string text = slurp(fmt::format("/proc/{}/stat", pid));
  // The command's name stands in parentheses and may hold anything; what follows the last one is plain.
  const std::size_t close = text.rfind(')');
  if (close == std::string::npos || close + 2 >= text.size()) return std::nullopt;
  const std::vector<std::string> fields = split(std::string_view(text).substr(close + 2), ' ');
  if (fields.size() < 20 || fields[0].empty()) return std::nullopt;
  const std::optional<std::int64_t> start = parse_int(fields[19]);  // field 22 of the file
  if (!start) return std::nullopt;
  return StatFields{fields[0][0], static_cast<std::uint64_t>(*start)};
}

std::string boot_id() {
  static const std::string id(trim(slurp("/proc/sys/kernel/random/boot_id")));
  return id;
}

}  // namespace

std::string cpu_model() {
  const std::string info = slurp("/proc/cpuinfo");
  for (const std::string_view key : {"model name", "Model", "Hardware", "cpu model"}) {
    const std::optional<std::string> value = line_after(info, key);
    if (!value) continue;
    const std::string name(trim(std::string_view(*value).substr(value->find(':') + 1)));
    if (!name.empty()) return name;
  }
  return "unknown processor";
}

std::string cpu_isa() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl"))
    return "AVX-512";
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return "AVX2";
#endif
  return "baseline";
}

std::pair<std::string, bool> split_commit(const std::string& commit) {
  constexpr std::string_view dirty_mark = "+dirty";
  const bool dirty = commit.ends_with(dirty_mark);
  return {commit.substr(0, commit.size() - (dirty ? dirty_mark.size() : 0)), dirty};
}

int threads_for(std::int64_t wanted) { return wanted > 0 ? static_cast<int>(wanted) : usable_threads(); }

int usable_threads() {
  int threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  // A fixed cpu_set_t holds 1024 processors; larger computers need a larger set.
  for (int capacity = 1024; capacity <= 1 << 20; capacity *= 4) {
    cpu_set_t* set = CPU_ALLOC(static_cast<std::size_t>(capacity));
    const std::size_t size = CPU_ALLOC_SIZE(static_cast<std::size_t>(capacity));
    const bool read = set != nullptr && ::sched_getaffinity(0, size, set) == 0;
    if (read) threads = std::max(1, CPU_COUNT_S(size, set));
    CPU_FREE(set);
    if (read || errno != EINVAL) break;
  }
  const auto limit = [&threads](double quota, double period) {
    if (quota > 0 && period > 0) threads = std::clamp(static_cast<int>(std::ceil(quota / period)), 1, threads);
  };
  for (const fs::path& group : control_groups("")) {
    const std::vector<std::string> part = split(trim(slurp(group / "cpu.max")), ' ');
    if (part.size() == 2) limit(parse_double(part[0]).value_or(-1), parse_double(part[1]).value_or(-1));
  }
  for (const fs::path& group : control_groups("cpu"))
    limit(static_cast<double>(number_in(group / "cpu.cfs_quota_us")),
          static_cast<double>(number_in(group / "cpu.cfs_period_us")));
  return threads;
}

std::vector<std::string> nvidia_gpus() {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator i("/proc/driver/nvidia/gpus", error), end; !error && i != end; i.increment(error))
    names.push_back(line_after(slurp(i->path() / "information"), "Model:").value_or("NVIDIA GPU"));
  if (!names.empty()) return names;
  // Without a driver the bus still knows: vendor 10de, class 03 (display).
  for (fs::directory_iterator i("/sys/bus/pci/devices", error), end; !error && i != end; i.increment(error))
    if (trim(slurp(i->path() / "vendor")) == "0x10de" && slurp(i->path() / "class").starts_with("0x03"))
      names.push_back(fmt::format("NVIDIA GPU (device {}, no driver)", trim(slurp(i->path() / "device"))));
  return names;
}

Memory system_memory() {
  const std::string info = slurp("/proc/meminfo");
  Memory memory{std::max<std::int64_t>(0, kilobytes(info, "MemTotal:")), kilobytes(info, "MemAvailable:")};
  if (memory.available < 0) memory.available = std::max<std::int64_t>(0, kilobytes(info, "MemFree:"));
  const auto limit = [&memory](std::int64_t most, std::int64_t used, std::int64_t reclaimable) {
    if (most < 0 || most >= memory.total) return;
    memory.total = most;
    const std::int64_t busy = std::max<std::int64_t>(0, used - std::max<std::int64_t>(0, reclaimable));
    memory.available = std::clamp<std::int64_t>(most - busy, 0, memory.available);
  };
  const auto inactive = [](const std::string& stat) {
    return parse_int(line_after(stat, "total_inactive_file ").value_or(line_after(stat, "inactive_file ").value_or("")))
        .value_or(0);
  };
  for (const fs::path& group : control_groups(""))
    limit(number_in(group / "memory.max"), number_in(group / "memory.current"), inactive(slurp(group / "memory.stat")));
  for (const fs::path& group : control_groups("memory"))
    limit(number_in(group / "memory.limit_in_bytes"), number_in(group / "memory.usage_in_bytes"),
          inactive(slurp(group / "memory.stat")));
  return memory;
}

std::int64_t disk_free(const fs::path& path) {
  std::error_code error;
  fs::path at = fs::absolute(path, error);
  while (!at.empty() && !fs::exists(at, error) && at.has_relative_path()) at = at.parent_path();
  struct statvfs status {};
  if (::statvfs(at.c_str(), &status) != 0) return -1;
  return static_cast<std::int64_t>(status.f_bavail) * static_cast<std::int64_t>(status.f_frsize);
}

std::int64_t peak_resident_bytes() {
  return std::max<std::int64_t>(0, kilobytes(slurp("/proc/self/status"), "VmHWM:"));
}
std::int64_t resident_bytes() { return std::max<std::int64_t>(0, kilobytes(slurp("/proc/self/status"), "VmRSS:")); }

ProcessIdentity current_process() {
  const int pid = static_cast<int>(::getpid());
  const std::optional<StatFields> stat = process_stat(pid);
  return {pid, stat ? stat->start_ticks : 0, boot_id()};
}

bool process_alive(const ProcessIdentity& identity) {
  if (identity.pid <= 0 || identity.boot_id != boot_id()) return false;
  const std::optional<StatFields> stat = process_stat(identity.pid);
  return stat && stat->state != 'Z' && stat->state != 'X' && stat->start_ticks == identity.start_ticks;
}

std::vector<std::pair<std::string, std::string>> base_library_versions() {
  std::vector<std::pair<std::string, std::string>> versions;
  versions.emplace_back("glibc", gnu_get_libc_version());
  versions.emplace_back("libstdc++", fmt::format("{}", __GLIBCXX__));
  versions.emplace_back("fmt",
                        fmt::format("{}.{}.{}", FMT_VERSION / 10000, FMT_VERSION / 100 % 100, FMT_VERSION % 100));
  versions.emplace_back("OpenSSL", OpenSSL_version(OPENSSL_VERSION_STRING));
  return versions;
}

std::string environment_fingerprint(const std::vector<std::pair<std::string, std::string>>& libraries) {
  const BuildInfo& build = build_info();
  Sha256 hash;
  const auto add = [&hash](std::string_view text) {
    hash.update(text);
    hash.update(std::string_view("\0", 1));
  };
  for (const std::string& text : {build.version, build.commit, build.compiler, build.type, cpu_isa()}) add(text);
  for (const auto& [name, version] : libraries) {
    add(name);
    add(version);
  }
  return hash.hex().substr(0, 16);
}

}  // namespace stacklab
