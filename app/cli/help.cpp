#include <fmt/format.h>

#include <algorithm>

#include "app/cli/arguments.h"
#include "engine/base/json_writer.h"

namespace stacklab::cli {
namespace {

struct Row {
  std::string left, right;
};

void add_rows(std::string& text, std::string_view title, const std::vector<Row>& rows) {
  if (rows.empty()) return;
  std::size_t width = 0;
  for (const Row& row : rows) width = std::max(width, row.left.size());
  text += fmt::format("\n{}:\n", title);
  for (const Row& row : rows) text += fmt::format("  {:<{}}  {}\n", row.left, width, row.right);
}

Row row_of(const Argument& a) { return {a.placeholder.empty() ? a.name : a.name + " " + a.placeholder, a.help}; }

}  // namespace

std::string help_text(const std::vector<const Verb*>& path, const std::vector<Argument>& common) {
  const Verb& verb = *path.back();
  std::string command;
  for (const Verb* v : path) command += (command.empty() ? "" : " ") + v->name;

  std::string usage = command + (verb.verbs.empty() ? "" : " COMMAND");
  std::vector<Row> places, options, everywhere, verbs;
  for (const Argument& argument : verb.arguments) {
    (argument.is_option() ? options : places).push_back(row_of(argument));
    if (!argument.is_option()) usage += argument.required ? " " + argument.name : " [" + argument.name + "]";
  }
  for (const Argument& argument : common) everywhere.push_back(row_of(argument));
  everywhere.push_back({"--help", "This text"});
  if (path.size() == 1) everywhere.push_back({"--version", "Version and commit"});
  for (const Verb& below : verb.verbs) verbs.push_back({below.name, below.summary});

  std::string text = fmt::format("{}\n\nusage: {} [OPTIONS]\n", verb.summary, usage);
  if (!verb.details.empty()) text += "\n" + verb.details + "\n";
  add_rows(text, "commands", verbs);
  add_rows(text, "arguments", places);
  add_rows(text, "options", options);
  add_rows(text, "options of every command", everywhere);
  text += fmt::format("\nexample:\n  {}\n", verb.example);
  return text;
}

std::string help_json(const std::vector<const Verb*>& path, const std::vector<Argument>& common) {
  const Verb& verb = *path.back();
  JsonWriter w(2);
  w.begin_object();
  w.key("command");
  w.begin_array();
  for (const Verb* v : path) w.value(v->name);
  w.end_array();
  w.member("summary", verb.summary);
  w.member("details", verb.details);
  w.member("example", verb.example);
  w.key("commands");
  w.begin_array();
  for (const Verb& below : verb.verbs) {
    w.begin_object();
    w.member("name", below.name);
    w.member("summary", below.summary);
    w.end_object();
  }
  w.end_array();
  for (const auto& [key, arguments] : {std::pair("arguments", &verb.arguments), std::pair("common", &common)}) {
    w.key(key);
    w.begin_array();
    for (const Argument& argument : *arguments) {
      w.begin_object();
      w.member("name", argument.name);
      w.member("placeholder", argument.placeholder);
      w.member("help", argument.help);
      w.member("required", argument.required);
      w.end_object();
    }
    w.end_array();
  }
  w.end_object();
  return w.text();
}

}  // namespace stacklab::cli
