#include "engine/base/fingerprint.h"

#include <fmt/core.h>
#include <sys/utsname.h>

#include <algorithm>

#include "engine/base/atomic_file.h"
#include "engine/base/environment.h"
#include "engine/base/text.h"
#include "kernels/cpu/targets.h"

namespace stacklab {

const std::string* Fingerprint::find(std::string_view name) const {
  const auto at = std::find_if(fields.begin(), fields.end(), [name](const auto& f) { return f.first == name; });
  return at == fields.end() ? nullptr : &at->second;
}

Fingerprint current_fingerprint(std::string_view device, int threads,
                                const std::vector<std::pair<std::string, std::string>>& libraries) {
  const BuildInfo& build = build_info();
  Fingerprint f;
  f.fields = {{"cpu", cpu_model()},
              {"isa", device == "reference" ? "plain" : std::string(cpu::instruction_set())},
              {"device", std::string(device)},
              {"threads", std::to_string(threads)},
              {"compiler", build.compiler},
              {"build", build.type},
              {"version", build.version},
              {"os", operating_system()}};
  for (const auto& [name, version] : base_library_versions()) f.fields.emplace_back("library." + name, version);
  for (const auto& [name, version] : libraries) f.fields.emplace_back("library." + name, version);
  return f;
}

bool changes_bits(std::string_view field) { return field != "cpu" && field != "threads" && field != "os"; }

std::string operating_system() {
  std::string name;
  for (const char* file : {"/etc/os-release", "/usr/lib/os-release"}) {
    const Result<std::string> text = read_file(file, 1 << 16);
    if (!text) continue;
    for (const std::string& line : split(*text, '\n'))
      if (line.starts_with("PRETTY_NAME=")) {
        name = line.substr(12);
        std::erase(name, '"');
      }
    if (!name.empty()) break;
  }
  utsname system{};
  const std::string kernel = ::uname(&system) == 0 ? fmt::format("{} {}", system.sysname, system.release) : "unknown";
  return name.empty() ? kernel : printable(name) + ", " + kernel;
}

}  // namespace stacklab
