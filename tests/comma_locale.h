// A locale in which a number has a comma, for the time of a test.
#pragma once

#include <clocale>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/temporary_folder.h"

namespace stacklab {

class CommaLocale {
 public:
  CommaLocale() {
    if (set()) return;
    // Not every system has one ready: made of its sources where those are there.
    const std::string make = "localedef -i de_DE -f UTF-8 " + (folder_ / "de_DE.UTF-8").string() + " >/dev/null 2>&1";
    if (std::system(make.c_str()) == -1) return;
    ::setenv("LOCPATH", folder_.path().c_str(), 1);
    set();
  }
  ~CommaLocale() {
    std::setlocale(LC_ALL, "C");
    ::unsetenv("LOCPATH");
  }
  CommaLocale(const CommaLocale&) = delete;
  CommaLocale& operator=(const CommaLocale&) = delete;

  bool here() const { return here_; }

 private:
  bool set() {
    for (const char* locale : {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8"})
      here_ = here_ || std::setlocale(LC_ALL, locale) != nullptr;
    return here_;
  }

  TemporaryFolder folder_;
  bool here_ = false;
};

}  // namespace stacklab
