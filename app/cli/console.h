// Where the program speaks: results on stdout, everything else on stderr.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"

namespace stacklab::cli {

class Console {
 public:
  // With json, print() is silent: print_json writes the one document. quiet leaves results, warnings and errors.
  void configure(bool json, bool quiet);
  bool json() const { return json_; }
  bool quiet() const { return quiet_; }

  void print(std::string_view text);       // results for people
  void print_json(std::string_view text);  // one document; only with --json
  void note(std::string_view line);        // on stderr, unless quiet
  void warn(std::string_view line);        // on stderr
  // On stderr "stacklab: what (remedy)"; with --json also a document with "error" and "remedy", unless one was printed.
  void report(const Error& error);

  // Output that a reader no longer wants is dropped silently (stacklab runs list | head). Other failures, a full disk,
  // are found here at the latest.
  Status finish();

 private:
  void write(std::string_view text);

  bool json_ = false, quiet_ = false, document_printed_ = false;
  int failed_with_ = 0;  // errno of the first failed write
};

// Lines of cells in columns; numbers (right) are aligned to the right. The first row is the header.
std::string table(const std::vector<std::vector<std::string>>& rows, const std::vector<bool>& right);

}  // namespace stacklab::cli
