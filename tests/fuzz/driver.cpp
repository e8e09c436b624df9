// One target for libFuzzer: the one that $FUZZ_TARGET names.
#include <cstdio>
#include <cstdlib>

#include "tests/fuzz/targets.h"

// FUZZ_TARGET=list: each target's name and the folders of its seeds, or "missing" and why it cannot run, a line each.
extern "C" int LLVMFuzzerInitialize(int*, char***) {
  const char* const name = std::getenv("FUZZ_TARGET");
  if (name == nullptr || std::string_view(name) != "list") return 0;
  for (const stacklab::fuzz::Target& t : stacklab::fuzz::targets()) {
    if (!t.missing.empty()) {
      std::printf("%s missing %s\n", t.name.c_str(), t.missing.c_str());
      continue;
    }
    std::printf("%s fuzz/corpus/%s regressions/fuzz/%s", t.name.c_str(), t.name.c_str(), t.name.c_str());
    for (const std::string& folder : t.seeds) std::printf(" %s", folder.c_str());
    std::puts("");
  }
  std::exit(0);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const stacklab::fuzz::Target* const target = [] {
    const char* const name = std::getenv("FUZZ_TARGET");
    for (const stacklab::fuzz::Target& t : stacklab::fuzz::targets())
      if (name != nullptr && t.name == name) return &t;
    std::fprintf(stderr, "FUZZ_TARGET names none of the targets\n");
    std::exit(2);
  }();
  target->run({reinterpret_cast<const char*>(data), size});
  return 0;
}
