// Facts about this computer, this process and this build.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stacklab {

std::string cpu_model();
// Widest of "AVX-512", "AVX2", "baseline" that processor and system both offer.
std::string cpu_isa();
// Logical processors that this process may use: affinity and the container's quota count. At least 1.
int usable_threads();
// As many as are wanted, or all that are usable: 0 stands for these.
int threads_for(std::int64_t wanted);

// NVIDIA devices that the system lists, by name where a driver tells it ("NVIDIA H200"), whether or not they can be
// used.
std::vector<std::string> nvidia_gpus();

struct Memory {
  std::int64_t total = 0;      // bytes; the container's limit where that is lower
  std::int64_t available = 0;  // bytes for new use without swapping; likewise
};
Memory system_memory();

// Free bytes for this user where path is, or would be made (the nearest folder that exists). -1 when unknown.
std::int64_t disk_free(const std::filesystem::path& path);

std::int64_t peak_resident_bytes();  // the largest resident memory of this process so far
std::int64_t resident_bytes();

// A process, told apart from a later one with the same number.
struct ProcessIdentity {
  int pid = 0;
  std::uint64_t start_ticks = 0;  // since boot
  std::string boot_id;

  bool operator==(const ProcessIdentity&) const = default;
};
ProcessIdentity current_process();
// Whether that very process still runs on this computer since this boot. Zombies do not.
bool process_alive(const ProcessIdentity& identity);

// Of this build, taken when it was built.
struct BuildInfo {
  std::string version;  // "0.1.0"
  std::string
      commit;  // 12 hex digits, "+dirty" appended when tracked files had changes; "unknown" outside a git checkout
  std::string compiler;  // "GNU 12.2.0"
  std::string type;      // "Release"
};
const BuildInfo& build_info();
// Such a commit without its "+dirty", and whether it had one.
std::pair<std::string, bool> split_commit(const std::string& commit);

// Name and version of the libraries that this room uses, and of the C and C++ libraries.
std::vector<std::pair<std::string, std::string>> base_library_versions();

// 16 hex digits over what can change a result's bits: this build, the ISA, these libraries.
std::string environment_fingerprint(const std::vector<std::pair<std::string, std::string>>& libraries);

}  // namespace stacklab
