// Where something was computed, field by field, so that whoever computes it again can say what differs.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stacklab {

struct Fingerprint {
  // In order: "cpu", "isa", "device", "threads", "compiler", "build", "version", "os", and "library.<name>" for each
  // library. The commit is beside it: it belongs to whoever records both.
  std::vector<std::pair<std::string, std::string>> fields;

  const std::string* find(std::string_view name) const;  // nullptr: not recorded
  bool operator==(const Fingerprint&) const = default;
};

// Of this process, which computes on that backend with so many threads. libraries: those of other rooms, beside
// base_library_versions().
Fingerprint current_fingerprint(std::string_view device, int threads,
                                const std::vector<std::pair<std::string, std::string>>& libraries = {});

// Whether another value of this field may change the bits of what is computed. The processor's name, the number of
// threads and the system are recorded, but by themselves change none.
bool changes_bits(std::string_view field);

// "Debian GNU/Linux 12 (bookworm), Linux 6.1.0"
std::string operating_system();

}  // namespace stacklab
