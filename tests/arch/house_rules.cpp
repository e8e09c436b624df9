#include "tests/arch/house_rules.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <fstream>
#include <functional>
#include <iterator>
#include <optional>
#include <set>
#include <sstream>

namespace stacklab::arch {
namespace {

// Qt-free folders that app and ui may include from the engine: the service, and the vocabulary that its interface is
// made of.
const std::set<std::string> engine_doors = {"service", "run", "config", "base"};

// Rooms of ui in the order of allowed includes; plots know nothing of the engine either.
const std::vector<std::string> ui_rooms = {"theme", "plots", "models", "frame", "pages", "shell"};

const std::vector<std::string> layers = {"kernels", "engine", "ui", "app"};

bool starts_with(const std::string& text, const std::string& head) { return text.compare(0, head.size(), head) == 0; }
bool ends_with(const std::string& text, const std::string& tail) {
  return text.size() >= tail.size() && text.compare(text.size() - tail.size(), tail.size(), tail) == 0;
}

// The n-th folder or name of a path ("" past its end).
std::string part(const std::string& path, int n) {
  std::istringstream in(path);
  std::string word;
  for (int i = 0; i <= n; ++i) {
    if (!std::getline(in, word, '/')) return "";
  }
  return word;
}

int rank(const std::vector<std::string>& order, const std::string& name) {
  const auto found = std::find(order.begin(), order.end(), name);
  return found == order.end() ? -1 : static_cast<int>(found - order.begin());
}

bool is_source(const std::string& path) {
  static const std::array<std::string, 6> ends = {".h", ".hpp", ".cpp", ".cu", ".cuh", ".inl"};
  return std::any_of(ends.begin(), ends.end(), [&](const std::string& end) { return ends_with(path, end); });
}

bool is_header(const std::string& path) {
  return is_source(path) && !ends_with(path, ".cpp") && !ends_with(path, ".cu");
}

bool is_cmake(const std::string& path) { return ends_with(path, "CMakeLists.txt") || ends_with(path, ".cmake"); }

void for_lines(const std::string& text, const std::function<void(int, const std::string&)>& visit) {
  std::istringstream in(text);
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) visit(number, line);
}

// What Qt's moc makes of a header or a source.
bool from_moc(const std::string& path) {
  return ends_with(path, ".moc") || (starts_with(path, "moc_") && ends_with(path, ".cpp"));
}

struct Include {
  int line;
  std::string path;
  bool quoted;
};

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// Splits text into runs of characters that `belongs` accepts.
template <class Belongs, class Visit>
void for_words(const std::string& text, Belongs belongs, Visit visit) {
  for (std::size_t begin = 0; begin < text.size(); ++begin) {
    std::size_t end = begin;
    while (end < text.size() && belongs(text[end])) ++end;
    if (end > begin) visit(text.substr(begin, end - begin));
    begin = end;
  }
}

std::vector<Include> includes_of(const std::string& text) {
  std::vector<Include> found;
  for_lines(text, [&](int number, const std::string& line) {
    std::size_t at = line.find_first_not_of(" \t");
    if (at == std::string::npos || line[at] != '#') return;
    at = line.find_first_not_of(" \t", at + 1);
    const std::string word = "include";
    if (at == std::string::npos || line.compare(at, word.size(), word) != 0) return;
    at = line.find_first_not_of(" \t", at + word.size());
    if (at == std::string::npos || (line[at] != '<' && line[at] != '"')) return;
    const std::size_t end = line.find(line[at] == '<' ? '>' : '"', at + 1);
    if (end != std::string::npos) found.push_back({number, line.substr(at + 1, end - at - 1), line[at] == '"'});
  });
  return found;
}

// What keeps `from` (a file) from using `to` (a path below kernels/, engine/, ui/ or app/); empty when nothing does.
std::string barrier(const std::string& from, const std::string& to) {
  const int from_layer = rank(layers, part(from, 0)), to_layer = rank(layers, part(to, 0));
  if (from_layer < 0 || to_layer < 0) return "";
  if (from_layer < to_layer) return part(from, 0) + " may not use " + part(to, 0) + ": kernels <- engine <- ui <- app";
  const std::string from_room = part(from, 1), to_room = part(to, 1);
  if (layers[to_layer] == "engine") {
    const int to_rank = rank(engine_rooms(), to_room);
    if (to_rank < 0) return "engine/" + to_room + " is not a room of the engine";
    if (layers[from_layer] == "engine") {
      const int from_rank = rank(engine_rooms(), from_room);
      if (from_rank < 0) return "engine/" + from_room + " is not a room of the engine";
      if (from_rank < to_rank) return "engine/" + from_room + " comes before engine/" + to_room + " and may not use it";
    } else if (layers[from_layer] == "ui" && from_room == "plots") {
      return "ui/plots knows nothing of the engine";
    } else if (!engine_doors.count(to_room)) {
      return part(from, 0) + " sees the engine through service/, run/, config/ and base/ only";
    }
  }
  const bool in_room = from.find('/', part(from, 0).size() + 1) != std::string::npos;
  if (in_room && layers[from_layer] == "ui" && layers[to_layer] == "ui") {
    const int from_rank = rank(ui_rooms, from_room), to_rank = rank(ui_rooms, to_room);
    if (from_rank < 0) return "ui/" + from_room + " is not a room of ui";
    if (to_rank < 0) return "ui/" + to_room + " is not a room of ui";
    if (from_rank < to_rank) return "ui/" + from_room + " comes before ui/" + to_room + " and may not use it";
    if (from_room == "pages" && to_room == "pages" && part(from, 2) != part(to, 2))
      return "a page may not use another page";
  }
  if (starts_with(from, "app/cli/") && layers[to_layer] == "ui") return "the command line may not use ui";
  if (layers[from_layer] == "app" && layers[to_layer] == "app" && from_room != to_room)
    return "a program may not use another program";
  return "";
}

bool below_ui(const std::string& path) {
  return starts_with(path, "kernels/") || starts_with(path, "engine/") || starts_with(path, "app/cli/");
}

// The CMake list's words without comments, with their lines.
void for_cmake_words(const std::string& text, const std::function<void(int, const std::string&)>& visit) {
  for_lines(text, [&](int number, const std::string& line) {
    const std::string code = line.substr(0, line.find('#'));
    for_words(
        code, [](char c) { return is_word(c) || c == ':' || c == '.' || c == '+' || c == '-'; },
        [&](const std::string& word) { visit(number, word); });
  });
}

// "base" of stacklab::base and of stacklab_base; empty for other words.
std::string linked_name(const std::string& word) {
  for (const std::string head : {"stacklab::", "stacklab_"}) {
    if (starts_with(word, head)) return word.substr(head.size());
  }
  return "";
}

// The folder that a target's name stands for, as a path that barrier() understands; empty if the name is not one of a
// room.
std::string folder_of_target(const std::string& name) {
  if (name == "kernels" || starts_with(name, "kernels_")) return "kernels/x";
  if (rank(engine_rooms(), name) >= 0) return "engine/" + name + "/x";
  for (const std::string& room : ui_rooms) {
    if (name == "ui_" + room) return "ui/" + room + "/x";
  }
  return "";
}

}  // namespace

const std::vector<std::string>& engine_rooms() {
  static const std::vector<std::string> rooms = {"base",    "tensor", "dist",      "program", "config",  "tokenizer",
                                                 "data",    "model",  "objective", "optim",   "run",     "decode",
                                                 "interop", "agent",  "eval",      "train",   "planner", "bench",
                                                 "scaling", "repro",  "store",     "serve",   "service"};
  return rooms;
}

std::string to_string(const Violations& violations) {
  std::string text;
  for (const Violation& violation : violations) {
    text +=
        violation.file + (violation.line ? ":" + std::to_string(violation.line) : "") + ": " + violation.what + "\n";
  }
  return text;
}

Violations check_include_order(const Tree& tree) {
  Violations violations;
  for (const auto& [path, text] : tree) {
    if (!is_source(path)) continue;
    if (part(path, 0) == "engine" && rank(engine_rooms(), part(path, 1)) < 0) {
      violations.push_back({path, 0, "is in no room of the engine"});
    }
    for (const Include& include : includes_of(text)) {
      std::string what = barrier(path, include.path);
      if (what.empty() && rank(layers, part(path, 0)) >= 0 && starts_with(include.path, "tests/"))
        what = "the programs may not use tests/";
      if (!what.empty()) violations.push_back({path, include.line, "includes " + include.path + ": " + what});
    }
  }
  return violations;
}

Violations check_qt(const Tree& tree) {
  const auto upper = [](const std::string& text, std::size_t at) {
    return at < text.size() && text[at] >= 'A' && text[at] <= 'Z';
  };
  // <QString>, <QtCore/...>, <qglobal.h>
  const auto qt = [&](const std::string& header) {
    if (starts_with(header, "Qt") && upper(header, 2)) return true;
    if (header.find('/') != std::string::npos) return false;
    return (header[0] == 'Q' && upper(header, 1)) || (header[0] == 'q' && ends_with(header, ".h"));
  };
  // <QtWidgets>, <QtWidgets/QtWidgets>; but <QtGlobal> and <QtMath> are single headers
  static const std::set<std::string> modules = {"QtCore", "QtGui",        "QtWidgets",    "QtCharts",
                                                "QtSvg",  "QtSvgWidgets", "QtTest",       "QtNetwork",
                                                "QtSql",  "QtDBus",       "QtConcurrent", "QtPrintSupport"};
  const auto umbrella = [&](const std::string& header) {
    return modules.count(header.substr(header.rfind('/') + 1)) > 0;
  };
  Violations violations;
  for (const auto& [path, text] : tree) {
    if (is_source(path)) {
      for (const Include& include : includes_of(text)) {
        if (below_ui(path) && qt(include.path)) {
          violations.push_back(
              {path, include.line, "includes " + include.path + ": no Qt below ui, nor in the command line"});
        } else if (umbrella(include.path)) {
          violations.push_back({path, include.line, "includes all of " + include.path + ": name the classes' headers"});
        }
      }
    } else if (is_cmake(path) && below_ui(path)) {
      for_cmake_words(text, [&, path = path](int line, const std::string& word) {
        if (starts_with(word, "Qt6") || starts_with(word, "Qt::")) {
          violations.push_back({path, line, "names " + word + ": no Qt below ui, nor in the command line"});
        }
      });
    }
  }
  return violations;
}

Violations check_heavy_headers(const Tree& tree) {
  Violations violations;
  std::vector<std::string> command_lines;
  for (const auto& [path, text] : tree) {
    if (!is_source(path)) continue;
    for (const Include& include : includes_of(text)) {
      const bool cli11 = starts_with(include.path, "CLI/");
      const bool heavy = cli11 || starts_with(include.path, "spdlog/") ||
                         (starts_with(include.path, "nlohmann/") && include.path != "nlohmann/json_fwd.hpp");
      if (heavy && is_header(path)) {
        violations.push_back({path, include.line,
                              "includes " + include.path + " in a header: every file that includes it pays seconds"});
      }
      if (cli11) {
        if (!command_lines.empty() && command_lines.front() != path) {
          violations.push_back(
              {path, include.line, "includes CLI11, as " + command_lines.front() + " does: one file may"});
        }
        command_lines.push_back(path);
      }
    }
  }
  return violations;
}

Violations check_include_paths(const Tree& tree) {
  Violations violations;
  for (const auto& [path, text] : tree) {
    if (!is_source(path)) continue;
    for (const Include& include : includes_of(text)) {
      if (!include.quoted || from_moc(include.path) || tree.count(include.path) || tree.count(include.path + ".in"))
        continue;
      violations.push_back(
          {path, include.line,
           "includes \"" + include.path + "\", which is no file of the repository named from its root"});
    }
  }
  return violations;
}

Violations check_links(const Tree& tree) {
  Violations violations;
  // links[room]: rooms of the engine (and "kernels") that its CMake list names.
  std::map<std::string, std::set<std::string>> links;
  for (const auto& [path, text] : tree) {
    if (!is_cmake(path) || rank(layers, part(path, 0)) < 0) continue;
    const std::string folder = part(path, 0) + "/" + part(path, 1);
    for_cmake_words(text, [&, path = path](int line, const std::string& word) {
      const std::string name = linked_name(word), target = folder_of_target(name);
      if (target.empty()) return;
      const std::string what = barrier(path, target);
      if (!what.empty()) violations.push_back({path, line, "names " + word + ": " + what});
      if (part(path, 0) == "engine" && part(path, 2) == "CMakeLists.txt") links[part(path, 1)].insert(name);
    });
    if (path == "engine/CMakeLists.txt") {
      std::vector<std::string> listed;
      for_cmake_words(text, [&](int, const std::string& word) {
        if (rank(engine_rooms(), word) >= 0) listed.push_back(word);
      });
      if (listed != engine_rooms())
        violations.push_back({path, 0, "does not list the rooms in the order of the house"});
    }
  }
  // Every included room is linked, directly or through others; a header found without its link works by chance.
  const std::function<void(const std::string&, std::set<std::string>&)> reach = [&](const std::string& room,
                                                                                    std::set<std::string>& all) {
    for (const std::string& next : links[room]) {
      if (all.insert(next).second) reach(next, all);
    }
  };
  std::map<std::string, std::set<std::string>> reachable;
  for (const std::string& room : engine_rooms()) reach(room, reachable[room]);
  for (const auto& [path, text] : tree) {
    if (!is_source(path) || part(path, 0) != "engine") continue;
    const std::string room = part(path, 1);
    if (!tree.count("engine/" + room + "/CMakeLists.txt")) continue;
    for (const Include& include : includes_of(text)) {
      const std::string layer = part(include.path, 0);
      const std::string used = layer == "kernels" ? layer : layer == "engine" ? part(include.path, 1) : "";
      if (used.empty() || used == room || reachable[room].count(used)) continue;
      violations.push_back({path, include.line,
                            "includes " + include.path + ", but engine/" + room + " does not link stacklab::" + used});
    }
  }
  return violations;
}

Violations check_top_level(const Tree& tree) {
  static const std::set<std::string> allowed = {"CMakeLists.txt",
                                                "app",
                                                "engine",
                                                "kernels",
                                                "ui",
                                                "resources",
                                                "experiments",
                                                "tests",
                                                "README.md",
                                                "CMakePresets.json",
                                                ".clang-format",
                                                ".clang-tidy",
                                                ".gitignore",
                                                ".ci",
                                                "run",
                                                "test",
                                                "packages.txt",
                                                "LICENSE",
                                                "CONTRIBUTING.md"};
  Violations violations;
  for (const auto& [path, text] : tree) {
    if (!allowed.count(part(path, 0)))
      violations.push_back({path, 0, "is below a top-level name that the house does not have"});
  }
  return violations;
}

Violations check_file_length(const Tree& tree) {
  Violations violations;
  for (const auto& [path, text] : tree) {
    if (!is_source(path)) continue;
    const auto lines = std::count(text.begin(), text.end(), '\n');
    if (lines > most_lines)
      violations.push_back(
          {path, 0, "has " + std::to_string(lines) + " lines, more than " + std::to_string(most_lines)});
  }
  return violations;
}

Violations check_leftovers(const Tree& tree) {
  // Written in pieces, so that this file keeps the rule.
  static const std::set<std::string> notes = {
      "TO"
      "DO",
      "FIX"
      "ME",
      "XX"
      "X"};
  Violations violations;
  for (const auto& [path, text] : tree) {
    for_lines(text, [&, path = path](int number, const std::string& line) {
      for_words(line, is_word, [&](const std::string& word) {
        if (notes.count(word)) violations.push_back({path, number, "says " + word});
      });
    });
  }
  return violations;
}

Violations check_header_guards(const Tree& tree) {
  Violations violations;
  for (const auto& [path, text] : tree) {
    // Highway compiles -inl.h files once for each target.
    if (is_header(path) && !ends_with(path, "-inl.h") && text.find("#pragma once") == std::string::npos) {
      violations.push_back({path, 0, "has no #pragma once"});
    }
  }
  return violations;
}

Violations check_readme(const Tree& tree) {
  const auto readme = tree.find("README.md");
  if (readme == tree.end()) return {{"README.md", 0, "is missing"}};
  Violations violations;
  std::size_t last = 0;
  for (const std::string& room : engine_rooms()) {
    if (!tree.count("engine/" + room + "/CMakeLists.txt")) continue;
    const std::size_t at = readme->second.find("| `engine/" + room + "/`");
    if (at == std::string::npos) {
      violations.push_back({"README.md", 0, "does not tell of engine/" + room});
    } else if (at < last) {
      violations.push_back({"README.md", 0, "tells of engine/" + room + " too early"});
    } else {
      last = at;
    }
  }
  return violations;
}

Tree read_tree(const std::filesystem::path& root) {
  namespace fs = std::filesystem;
  std::vector<std::string> names;
  std::string quoted = "'";
  for (const char c : root.string()) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  quoted += "'";
  const std::string command = "git -C " + quoted + " ls-files -z --cached --others --exclude-standard 2>/dev/null";
  if (FILE* git = popen(command.c_str(), "r")) {
    std::string name;
    for (int c; (c = std::fgetc(git)) != EOF;) {
      if (c != 0) {
        name += static_cast<char>(c);
        continue;
      }
      names.push_back(std::move(name));
      name.clear();
    }
    pclose(git);
  }
  if (names.empty()) {
    for (auto it = fs::recursive_directory_iterator(root), end = fs::recursive_directory_iterator(); it != end; ++it) {
      const std::string name = it->path().filename().string();
      if (it->is_directory() && it.depth() == 0 &&
          (name == "build" || name == "workspace" || (name[0] == '.' && name != ".ci"))) {
        it.disable_recursion_pending();
      } else if (it->is_regular_file()) {
        names.push_back(fs::relative(it->path(), root).generic_string());
      }
    }
  }
  Tree tree;
  for (const std::string& name : names) {
    std::ifstream in(root / name, std::ios::binary);
    if (!in) continue;  // deleted, but still known to git
    std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    if (text.find('\0') != std::string::npos) text.clear();
    tree.emplace(name, std::move(text));
  }
  return tree;
}

}  // namespace stacklab::arch
