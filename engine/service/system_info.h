// What this computer is and has, for doctor and the window's status bar.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/fingerprint.h"

namespace stacklab {

struct SystemInfo {
  std::string cpu;                                             // model name
  int threads = 0;                                             // logical processors this process may use
  std::string isa;                                             // widest of "AVX-512", "AVX2", "baseline"
  std::int64_t memory_total = 0;                               // bytes
  std::int64_t memory_free = 0;                                // bytes available to a new program now
  std::int64_t disk_free = 0;                                  // bytes, where the workspace is (or would be)
  std::vector<std::string> gpus;                               // empty: none
  std::string gpu_note;                                        // one sentence on why there is none, or which
  std::vector<std::string> devices;                            // what --device accepts here, best first
  std::vector<std::pair<std::string, std::string>> libraries;  // name, version
  std::string version;                                         // of Stacklab
  std::string commit;  // built from; "+dirty" appended when the tree had changes
  std::string compiler;
  std::string os;
  Fingerprint environment;  // field by field, of a run that chooses its device and uses all threads
  std::string fingerprint;  // 16 hex digits over what can change bits: binary version, ISA, library versions
};

// Cheap enough for a timer on a worker thread (reads /proc and statvfs).
SystemInfo system_info(const std::filesystem::path& workspace);

}  // namespace stacklab
