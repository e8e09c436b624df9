#include "engine/service/system_info.h"

#include <fmt/core.h>
#include <sqlite3.h>

#include "engine/base/environment.h"
#include "kernels/backend.h"

namespace stacklab {
namespace {

// One sentence on the GPU: what was found, and what this build makes of it.
std::string gpu_sentence(const std::vector<std::string>& gpus, bool has_cuda) {
  if (has_cuda) return gpus.empty() ? "No NVIDIA GPU was found." : "Runs on the GPU use " + gpus.front() + ".";
  if (gpus.empty()) return "No NVIDIA GPU was found; this build trains on the CPU.";
  return fmt::format("{} is there, but this build has no CUDA backend: it trains on the CPU.", gpus.front());
}

}  // namespace

SystemInfo system_info(const std::filesystem::path& workspace) {
  SystemInfo info;
  info.cpu = cpu_model();
  info.threads = usable_threads();
  info.isa = cpu_isa();
  const Memory memory = system_memory();
  info.memory_total = memory.total;
  info.memory_free = memory.available;
  info.disk_free = disk_free(workspace);
  info.gpus = nvidia_gpus();
  bool has_cuda = false;
  for (const std::string_view name : backend_names()) {
    has_cuda |= name == "cuda";
    info.devices.emplace_back(name);
  }
  info.gpu_note = gpu_sentence(info.gpus, has_cuda);
  info.libraries = base_library_versions();
  info.libraries.emplace_back("SQLite", sqlite3_libversion());
  info.version = build_info().version;
  info.commit = build_info().commit;
  info.compiler = build_info().compiler;
  info.os = operating_system();
  info.environment =
      current_fingerprint(find_backend("auto")->name(), info.threads, {{"SQLite", sqlite3_libversion()}});
  info.fingerprint = environment_fingerprint(info.libraries);
  return info;
}

}  // namespace stacklab
