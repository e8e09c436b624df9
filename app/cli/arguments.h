// From the words of a command line to a verb with its arguments filled in.
#pragma once

#include <string>
#include <vector>

#include "app/cli/verb.h"

namespace stacklab::cli {

struct Parsed {
  std::vector<const Verb*> path;  // from the program itself down to the verb that was named
  bool help = false;
  bool version = false;
};

// Fills the targets of common options and of the verb's arguments. Errors are of kind usage and suggest the nearest
// name. When help or version is asked for, nothing else is checked. words: without the program's name.
Result<Parsed> parse(const Verb& program, const std::vector<Argument>& common, const std::vector<std::string>& words);

// Text of --help for the last verb of the path.
std::string help_text(const std::vector<const Verb*>& path, const std::vector<Argument>& common);
// The same as JSON.
std::string help_json(const std::vector<const Verb*>& path, const std::vector<Argument>& common);

}  // namespace stacklab::cli
