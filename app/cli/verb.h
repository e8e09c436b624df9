// What a command is: its words, its arguments, and what it does. Parsing and help are made from this alone.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "engine/base/result.h"

namespace stacklab::cli {

class Console;

struct Argument {
  using Target = std::variant<bool*, std::string*, std::optional<std::int64_t>*, std::vector<std::string>*>;

  std::string name;         // "--max-steps", or "CONFIG" for one that is known by its place
  std::string placeholder;  // of an option's value: "N"; empty for flags and places
  std::string help;
  Target target;  // bool: a flag; the list: may be given again and again
  bool required = false;
  bool many = false;  // of a list: every word up to the next option belongs to it

  bool is_option() const { return name.starts_with("-"); }
};

// Options that every command takes.
struct Common {
  std::string workspace;  // folder; filled from the environment when not given
  std::vector<std::string> set;
  std::string device;
  std::optional<std::int64_t> threads, seed;
  bool json = false, quiet = false, yes = false;
};

struct Context {
  const Common& common;
  Console& console;
  const std::vector<std::string>& words;  // of the command line, without the program's name
};

// A verb either does something or has verbs below it.
struct Verb {
  std::string name;
  std::string summary;  // one line
  std::string example;  // one or more whole command lines
  std::vector<Argument> arguments;
  std::vector<Verb> verbs;
  std::function<Status(Context& context)> run;
  std::string details;  // for its own help; may be empty
};

Verb bench_verb();
Verb checkpoint_verb();
Verb corpus_add_verb();
Verb corpus_verb();
Verb data_verb();
Verb doctor_verb();
Verb fork_verb();
Verb params_verb();
Verb pause_verb();
Verb plan_verb();
Verb queue_verb();
Verb replay_verb();
Verb resume_verb();
Verb runs_verb();
Verb stop_verb();
Verb tokenizer_verb();
Verb train_verb();

}  // namespace stacklab::cli
