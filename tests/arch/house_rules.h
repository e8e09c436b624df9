// The rules of the house as pure functions over a tree of files, so that invented trees can prove that each rule can
// fail.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace stacklab::arch {

// Path from the repository's root, with '/', to the file's text.
using Tree = std::map<std::string, std::string>;

struct Violation {
  std::string file;
  int line = 0;  // 0: the file as a whole
  std::string what;
};
using Violations = std::vector<Violation>;

// One "file:line: what" a line.
std::string to_string(const Violations& violations);

// The engine's rooms in the order of allowed includes: a room may use rooms before it, never after.
const std::vector<std::string>& engine_rooms();

// kernels <- engine <- ui <- app by #include lines; the order of rooms within engine and ui; which rooms ui and app may
// see.
Violations check_include_order(const Tree& tree);

// No Qt below ui nor in app/cli, in sources and in CMake lists; no umbrella headers of whole Qt modules.
Violations check_qt(const Tree& tree);

// JSON, spdlog and CLI11 headers only in .cpp files (nlohmann/json_fwd.hpp may be anywhere); CLI11 in one file of the
// programs.
Violations check_heavy_headers(const Tree& tree);

// An #include "..." names a file of this tree from its root.
Violations check_include_paths(const Tree& tree);

// CMake: a room links only what its includes may reach; it links, directly or through others, each room that it
// includes; and engine/CMakeLists.txt lists the rooms in the order of engine_rooms().
Violations check_links(const Tree& tree);

// Top-level names are those of the house.
Violations check_top_level(const Tree& tree);

// No source file has more lines than this.
inline constexpr int most_lines = 600;
Violations check_file_length(const Tree& tree);

// No notes to self: work left over belongs elsewhere.
Violations check_leftovers(const Tree& tree);

// Every C++ header has #pragma once, or as an -inl.h Highway's guard.
Violations check_header_guards(const Tree& tree);

// README.md tells the pipeline in the order of the folders: it names every room of the engine that there is, in their
// order.
Violations check_readme(const Tree& tree);

// Files that git tracks or would track; without git, all but build folders and dot folders. Binary files have empty
// text.
Tree read_tree(const std::filesystem::path& root);

}  // namespace stacklab::arch
