// The command line: words in, one verb, an exit code out.
#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <new>
#include <string>
#include <vector>

#include "app/cli/arguments.h"
#include "app/cli/common.h"
#include "app/cli/completion.h"
#include "app/cli/console.h"
#include "app/cli/signals.h"
#include "engine/base/environment.h"
#include "engine/base/json_writer.h"

namespace stacklab::cli {
namespace {

int exit_code(Error::Kind kind) {
  switch (kind) {
    case Error::Kind::usage:
      return 2;
    case Error::Kind::refused:
      return 3;
    case Error::Kind::stopped:
      return 130;
    default:
      return 1;
  }
}

Status act(const Parsed& parsed, const std::vector<Argument>& common, Context& context) {
  const Verb& verb = *parsed.path.back();
  if (parsed.version) {
    const BuildInfo& build = build_info();
    context.console.print(
        fmt::format("stacklab {} ({}, {}, {})\n", build.version, build.commit, build.compiler, build.type));
    JsonWriter w(2);
    w.begin_object();
    w.member("version", build.version);
    w.member("commit", build.commit);
    w.member("compiler", build.compiler);
    w.member("build", build.type);
    w.end_object();
    context.console.print_json(w.text());
    return {};
  }
  if (parsed.help) {
    context.console.print(help_text(parsed.path, common));
    context.console.print_json(help_json(parsed.path, common));
    return {};
  }
  if (verb.run) return verb.run(context);
  std::vector<std::string> below;
  for (const Verb& v : verb.verbs) below.push_back(v.name);
  return usage_error(fmt::format("{} needs a command: {}", verb.name, fmt::join(below, ", ")),
                     fmt::format("see: {}{} --help", parsed.path.size() > 1 ? "stacklab " : "", verb.name));
}

int run(const std::vector<std::string>& words) {
  prepare_process();
  Console console;
  try {
    Common common;
    const std::vector<Argument> everywhere = common_arguments(common);
    const Verb program{"stacklab",
                       "Stacklab: train, look at and ship small language models",
                       "stacklab train experiments/first-run.json --workspace workspace",
                       {},
                       {bench_verb(), checkpoint_verb(), completion_verb(), corpus_verb(), data_verb(), doctor_verb(),
                        fork_verb(), params_verb(), pause_verb(), plan_verb(), queue_verb(), replay_verb(),
                        resume_verb(), runs_verb(), stop_verb(), tokenizer_verb(), train_verb()},
                       {},
                       {}};
    if (asks_for_candidates(words)) {
      console.print(to_lines(candidates(program, everywhere, {words.begin() + 2, words.end()})));
      return console.finish() ? 0 : 1;
    }
    const Result<Parsed> parsed = parse(program, everywhere, words);
    // A wrong command line is answered in the form that it asks for, as far as can be told.
    // So is help, whose options are not kept.
    const bool by_words = !parsed || parsed->help || parsed->version;
    const bool wants_json = by_words ? std::find(words.begin(), words.end(), "--json") != words.end() : common.json;
    console.configure(wants_json, common.quiet);
    StopSignals::answer_in_json(wants_json);
    Context context{common, console, words};
    Status done = parsed ? act(*parsed, everywhere, context) : Status(tl::unexpected(parsed.error()));
    if (done) done = console.finish();
    if (done) return 0;
    console.report(done.error());
    return exit_code(done.error().kind);
  } catch (const std::bad_alloc&) {
    console.report({Error::Kind::failed, "out of memory", "close other programs"});
  } catch (const std::exception& e) {
    console.report({Error::Kind::failed, fmt::format("an unexpected fault: {}", e.what()), "please report it"});
  }
  return 1;
}

}  // namespace
}  // namespace stacklab::cli

int main(int argc, char** argv) { return stacklab::cli::run({argv + (argc > 0 ? 1 : 0), argv + argc}); }
