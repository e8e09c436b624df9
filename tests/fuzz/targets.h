// Readers of files that others wrote, each as a function of its bytes. Whatever they are, a reader answers or refuses:
// it never crashes, reads outside, hangs or allocates without measure. libFuzzer drives one of them a program
// (resources/scripts/fuzz.sh); replay_test.cpp runs all of them on what is kept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace stacklab::fuzz {

struct Target {
  std::string name;
  std::function<bool(std::string_view bytes)> run;  // whether the reader accepted them
  // Folders below tests/, beside tests/fuzz/corpus/<name>, whose files are seeds too.
  std::vector<std::string> seeds;
  std::string missing = {};  // why it cannot run here; empty: it can
};

const std::vector<Target>& targets();

// Ends the program where a promise is broken, in every build.
void check(bool holds, const char* what);

}  // namespace stacklab::fuzz
