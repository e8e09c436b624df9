#include "app/cli/arguments.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <deque>
#include <map>

#include "engine/base/text.h"

namespace stacklab::cli {
namespace {

// One level of the command line with what CLI11 found on it.
struct Level {
  const Verb* verb = nullptr;
  CLI::App* app = nullptr;
  std::deque<std::pair<const Argument*, std::vector<std::string>>> values;  // a deque: CLI11 keeps addresses
  std::deque<std::pair<const Argument*, bool>> flags;
  std::deque<Level> below;
};

void declare(Level& level, const std::vector<Argument>& arguments) {
  for (const Argument& argument : arguments) {
    if (std::holds_alternative<bool*>(argument.target)) {
      auto& flag = level.flags.emplace_back(&argument, false);
      level.app->add_flag(argument.name, flag.second);
      continue;
    }
    auto& value = level.values.emplace_back(&argument, std::vector<std::string>());
    CLI::Option* option = level.app->add_option(argument.name, value.second);
    // One value a time; what is given again replaces, or for lists adds, later.
    option->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)->allow_extra_args(false);
    if (argument.many) option->expected(1, CLI::detail::expected_max_vector_size)->allow_extra_args(true);
  }
}

// No level passes words on to the one above it: a run may be called "train".
void build(Level& level, const std::vector<Argument>& common) {
  level.app->set_help_flag("");
  level.app->allow_extras();
  declare(level, common);
  declare(level, level.verb->arguments);
  for (const Verb& verb : level.verb->verbs) {
    Level& below = level.below.emplace_back();
    below.verb = &verb;
    below.app = level.app->add_subcommand(verb.name, verb.summary);
    build(below, common);
  }
}

Status fill(const Argument& argument, const std::vector<std::string>& given) {
  if (given.empty()) return {};
  // A variable of a script that is not set: nothing has no name.
  for (const char* thing : {"NAME", "DIR", "FILE", "F...", "CONFIG", "TOKENIZER", "INPUT", "RECIPE"})
    if ((argument.placeholder == thing || argument.name == thing) && std::ranges::any_of(given, &std::string::empty))
      return usage_error(fmt::format("{} is empty", argument.name));
  if (auto* const* text = std::get_if<std::string*>(&argument.target)) {
    **text = given.back();
  } else if (auto* const* list = std::get_if<std::vector<std::string>*>(&argument.target)) {
    (*list)->insert((*list)->end(), given.begin(), given.end());
  } else {
    const std::optional<std::int64_t> number = parse_int(given.back());
    if (!number)
      return usage_error(fmt::format("{}: \"{}\" is not a whole number", argument.name, printable(given.back())));
    *std::get<std::optional<std::int64_t>*>(argument.target) = *number;
  }
  return {};
}

std::string command_of(const std::vector<const Verb*>& path) {
  std::string words;
  for (const Verb* verb : path) words += (words.empty() ? "" : " ") + verb->name;
  return words;
}

// A command that is there, below another: "clone" is "runs clone".
std::optional<std::string> command_elsewhere(const std::string& word, const Verb& program) {
  std::vector<std::string> found;
  for (const Verb& verb : program.verbs)
    for (const Verb& below : verb.verbs)
      if (below.name == word) found.push_back(fmt::format("{} {} {}", program.name, verb.name, word));
  if (found.empty()) return std::nullopt;
  return fmt::format("did you mean {}?", fmt::join(found, " or "));
}

// The word that no level knew. Options come first: a misspelt one also displaces the words after it.
Error unknown_word(const std::vector<std::string>& extras, const std::vector<const Verb*>& path,
                   const std::vector<Argument>& common) {
  const Verb& verb = *path.back();
  std::vector<std::string> options, verbs;
  for (const auto* list : {&verb.arguments, &common})
    for (const Argument& argument : *list)
      if (argument.is_option()) options.push_back(argument.name);
  for (const Verb& below : verb.verbs) verbs.push_back(below.name);
  const auto remedy = [&](const std::string& meant) {
    return meant.empty() ? fmt::format("see: {} --help", command_of(path)) : meant;
  };
  for (const std::string& word : extras)
    if (word.size() > 1 && word.starts_with("-")) {
      const std::string name = word.substr(0, word.find('='));
      return {Error::Kind::usage, fmt::format("unknown option {}", printable(name)),
              remedy(did_you_mean(name, options))};
    }
  if (!verb.verbs.empty())
    return {Error::Kind::usage, fmt::format("unknown command \"{}\"", printable(extras[0])),
            remedy(path.size() > 1 ? did_you_mean(extras[0], verbs)
                                   : command_elsewhere(extras[0], verb).value_or(did_you_mean(extras[0], verbs)))};
  return {Error::Kind::usage, fmt::format("\"{}\" is one argument too many", printable(extras[0])), remedy({})};
}

bool given(const Level& level, std::string_view flag) {
  return std::any_of(level.flags.begin(), level.flags.end(),
                     [flag](const auto& f) { return f.second && f.first->name == flag; });
}

}  // namespace

Result<Parsed> parse(const Verb& program, const std::vector<Argument>& common, const std::vector<std::string>& words) {
  bool help = false, version = false;
  std::vector<Argument> everywhere = common;
  everywhere.push_back({"--help", "", "", &help});
  everywhere.push_back({"-h", "", "", &help});
  const std::vector<Argument> at_the_top = {{"--version", "", "", &version}};
  std::vector<Argument> top_options = everywhere;
  top_options.insert(top_options.end(), at_the_top.begin(), at_the_top.end());

  CLI::App app;
  Level top;
  top.verb = &program;
  top.app = &app;
  build(top, everywhere);
  declare(top, at_the_top);
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const CLI::ArgumentMismatch& e) {
    // "--seed: 1 required TEXT missing"
    const std::string what = e.what();
    return usage_error(fmt::format("{} needs a value", what.substr(0, what.find(':'))));
  } catch (const CLI::ParseError& e) {
    return usage_error(e.what(), fmt::format("see: {} --help", program.name));
  }

  Parsed parsed;
  std::vector<const Level*> levels;
  for (const Level* level = &top; level != nullptr;) {
    levels.push_back(level);
    parsed.path.push_back(level->verb);
    parsed.help |= given(*level, "--help") || given(*level, "-h");
    const auto next =
        std::find_if(level->below.begin(), level->below.end(), [](const Level& l) { return l.app->parsed(); });
    level = next == level->below.end() ? nullptr : &*next;
  }
  parsed.version = given(top, "--version");
  // Help on a command that is none would be an answer to something else.
  const std::vector<std::string> words_left = levels.back()->app->remaining();
  const bool unknown = !parsed.path.back()->verbs.empty() && !words_left.empty() && !words_left[0].starts_with("-");
  if ((parsed.help && !unknown) || parsed.version) return parsed;
  // The deepest level first: a misspelt option of a command says more than the words it displaced.
  for (std::size_t depth = levels.size(); depth > 0; --depth)
    if (const std::vector<std::string> extras = levels[depth - 1]->app->remaining(); !extras.empty()) {
      const std::vector<const Verb*> path(parsed.path.begin(),
                                          parsed.path.begin() + static_cast<std::ptrdiff_t>(depth));
      return tl::unexpected(unknown_word(extras, path, depth == 1 ? top_options : everywhere));
    }

  for (const Level* level : levels) {
    for (const auto& [argument, flag] : level->flags)
      if (flag) *std::get<bool*>(argument->target) = true;
    for (const auto& [argument, values] : level->values)
      if (Status filled = fill(*argument, values); !filled) return tl::unexpected(filled.error());
  }
  for (const auto& [argument, values] : levels.back()->values)
    if (argument->required && values.empty())
      return usage_error(fmt::format("{} needs {}", command_of(parsed.path), argument->name),
                         fmt::format("see: {} --help", command_of(parsed.path)));
  return parsed;
}

}  // namespace stacklab::cli
