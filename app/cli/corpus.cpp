#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <thread>

#include "app/cli/beside.h"
#include "app/cli/common.h"
#include "app/cli/console.h"
#include "engine/base/counted.h"
#include "engine/base/text.h"
#include "engine/service/corpora.h"
#include "engine/service/corpus_users.h"

namespace stacklab::cli {
namespace {

namespace fs = std::filesystem;

Status list(Context& context) {
  const Result<std::vector<CorpusEntry>> entries = corpus_catalogue(workspace_of(context.common));
  if (!entries) return tl::unexpected(entries.error());
  std::vector<std::vector<std::string>> rows = {{"name", "text", "here", "licence", "title", "how to get it"}};
  JsonWriter w(2);
  w.begin_object();
  w.key("corpora");
  w.begin_array();
  for (const CorpusEntry& e : *entries) {
    const bool own = e.source == "workspace";
    const std::string how = own ? "" : "stacklab corpus get " + e.name;
    rows.push_back({e.name, (own ? "" : "about ") + format_bytes(static_cast<double>(e.about_bytes)),
                    e.present ? "yes" : "no", e.licence, e.title,
                    own ? e.from : fmt::format("{}  ({} {})", how, e.source, e.from)});
    w.begin_object();
    w.member("name", e.name);
    w.member("title", e.title);
    w.member("licence", e.licence);
    w.member("source", e.source);
    w.member("from", e.from);
    w.member("how", how);
    w.member("bytes", e.about_bytes);
    w.member("present", e.present);
    w.end_object();
  }
  w.end_array();
  w.end_object();
  context.console.print(table(rows, {false, true, false, false, false, false}));
  context.console.print_json(w.text());
  return {};
}

// Prepares a corpus beside the terminal.
template <class Work>
Result<Corpus> prepare(const std::string& name, bool quiet, const Work& work) {
  return run_beside(
      name, quiet, {"text", "looking for " + name, 0, 0}, [&](const ReportProgress& report, std::stop_token stop) {
        const CorpusProgress progress = [&](std::string_view detail, std::int64_t done, std::int64_t total) {
          report({"text", std::string(detail), done, total});
        };
        return work(progress, stop);
      });
}

Status report(Context& context, const std::string& name, const Corpus& corpus) {
  const CorpusInfo& info = corpus.info();
  const fs::path folder = workspace_of(context.common) / "data" / name;
  std::vector<std::string> files;
  std::error_code error;
  for (fs::directory_iterator i(folder, error), end; !error && i != end; i.increment(error))
    files.push_back(i->path().filename().string());
  std::sort(files.begin(), files.end());
  const bool has_licence = std::find(files.begin(), files.end(), "licence.txt") != files.end();

  context.console.print(fmt::format(
      "{}: {}, {}, {}; {}\nlicence: {}{}\nSHA-256 {}\nstored in {}\n", info.name, info.title,
      counted(info.documents, "document"), format_bytes(static_cast<double>(info.bytes)), info.origin, info.licence,
      has_licence ? "; in full: stacklab corpus licence " + name : "", info.sha256, folder.string()));
  for (const CorpusSource& source : info.sources)
    context.console.print(fmt::format("from {} {}, {}, SHA-256 {}\n", source.name, source.version,
                                      format_bytes(static_cast<double>(source.bytes)), source.sha256));
  JsonWriter w(2);
  w.begin_object();
  w.member("name", info.name);
  w.member("title", info.title);
  w.member("licence", info.licence);
  w.member("origin", info.origin);
  w.member("documents", info.documents);
  w.member("bytes", info.bytes);
  w.member("sha256", info.sha256);
  w.member("folder", folder.string());
  w.key("files");
  w.begin_array();
  for (const std::string& file : files) w.value(file);
  w.end_array();
  w.key("sources");
  w.begin_array();
  for (const CorpusSource& source : info.sources) {
    w.begin_object();
    w.member("name", source.name);
    w.member("version", source.version);
    w.member("bytes", source.bytes);
    w.member("sha256", source.sha256);
    w.end_object();
  }
  w.end_array();
  w.end_object();
  context.console.print_json(w.text());
  return {};
}

Status get(Context& context, const std::string& name, std::int64_t files) {
  const Result<Corpus> corpus =
      prepare(name, context.console.quiet(), [&](const CorpusProgress& progress, std::stop_token stop) {
        return fetch_corpus(name, workspace_of(context.common), files, progress, stop);
      });
  if (!corpus) return tl::unexpected(corpus.error());
  return report(context, name, *corpus);
}

struct MakeWords {
  std::string generator, name, streams, kinds;
  std::optional<std::int64_t> people, size, documents;
};

Status make(Context& context, const MakeWords& words) {
  if (words.generator != "tinyworld")
    return usage_error("there is no generator \"" + words.generator + "\"", "stacklab corpus make tinyworld");
  const Common& common = context.common;
  TinyWorldSettings settings;
  if (common.seed) settings.seed = static_cast<std::uint64_t>(*common.seed);
  if (words.people && words.size) return usage_error("--people and --size are the same", "give one of them");
  if (words.people || words.size) settings.people = words.people ? *words.people : *words.size;
  if (!words.streams.empty()) settings.streams = words.streams;
  settings.kinds = words.kinds;
  settings.threads = static_cast<int>(std::clamp<std::int64_t>(
      common.threads.value_or(static_cast<std::int64_t>(std::thread::hardware_concurrency())), 1, 256));
  if (words.documents) {
    settings.items = *words.documents;
  } else if (settings.streams == "library") {
    const Result<std::int64_t> all = tinyworld_search_items(settings);
    if (!all) return tl::unexpected(all.error());
    settings.items = *all;
  }
  const std::string name = words.name.empty() ? words.generator : words.name;
  const Result<Corpus> corpus =
      prepare(name, context.console.quiet(), [&](const CorpusProgress& progress, std::stop_token stop) {
        return make_tinyworld(settings, name, workspace_of(common), common.yes, progress, stop);
      });
  if (!corpus) return tl::unexpected(corpus.error());
  return report(context, name, *corpus);
}

Verb make_verb() {
  const auto words = std::make_shared<MakeWords>();
  return {
      "make",
      "Generate a corpus of an invented world",
      "stacklab corpus make tinyworld --documents 100000 --streams documents:9,drills:1 --name big\n"
      "stacklab corpus make tinyworld --streams library --name library",
      {{"GENERATOR", "", "tinyworld", &words->generator, true},
       {"--name", "NAME", "What to call it (default: tinyworld)", &words->name},
       {"--people", "N", "The size of the world, 200 to 8000 people (default 2000)", &words->people},
       {"--size", "N", "The same as --people", &words->size},
       {"--documents", "N", "How many documents (default 12000, about 4 MB; of the library alone: all of it)",
        &words->documents},
       {"--streams", "LIST", "documents, drills, validation, test, library, with weights (default documents)",
        &words->streams},
       {"--kinds", "LIST", "Kinds of documents and their weights, as entry:3,letter:1 (default: all)", &words->kinds}},
      {},
      [words](Context& context) { return make(context, *words); },
      "TinyWorld is an invented world of people, towns, ships and goods whose facts are known and fit together. A "
      "corpus "
      "is a pure function of --seed (default 1), the size, the streams and the kinds. Streams: documents (about what "
      "models are trained on), validation and test (about entities that documents never names), library (what can only "
      "be "
      "searched for), drills (copying, counting, sorting, arithmetic, comparing, spelling). Kinds: entry, letter, "
      "diary, "
      "news, dialogue, ledger, timetable, register, recipe, game. A corpus of this name and other settings is replaced "
      "only with --yes."};
}

Status show_licence(Context& context, const std::string& name) {
  const Result<std::string> text = corpus_licence(name, workspace_of(context.common));
  if (!text) return tl::unexpected(text.error());
  context.console.print(*text);
  JsonWriter w(2);
  w.begin_object();
  w.member("name", name);
  w.member("text", *text);
  w.end_object();
  context.console.print_json(w.text());
  return {};
}

Status remove(Context& context, const std::string& name) {
  const fs::path workspace = workspace_of(context.common);
  const fs::path folder = workspace / "data" / name;
  if (Status may = may_remove_corpus(name, workspace); !may) return may;
  const auto users = users_of_corpus(name, workspace);
  if (!users) return tl::unexpected(users.error());
  if (!users->to_go_on.empty())
    return refused(fmt::format("the corpus {} is needed by {}", name, fmt::join(users->to_go_on, "; ")),
                   "let them finish, or delete them first: stacklab runs delete RUN, stacklab queue remove ENTRY");
  std::string what = "remove the corpus " + name + ", " + folder.string();
  if (!users->to_replay.empty())
    what += fmt::format(", without which these cannot be replayed: {}", fmt::join(users->to_replay, "; "));
  const Status sure = confirm(context, what);
  if (!sure) return sure;
  if (Status removed = remove_corpus(name, workspace); !removed) return removed;
  context.console.print("removed " + folder.string() + "\n");
  JsonWriter w(2);
  w.begin_object();
  w.member("removed", name);
  w.end_object();
  context.console.print_json(w.text());
  return {};
}

}  // namespace

Verb corpus_verb() {
  const auto name = std::make_shared<std::string>();
  const auto files = std::make_shared<std::optional<std::int64_t>>();
  const auto named = [name](const char* verb, const char* summary, const char* example, const char* what,
                            Status (*run)(Context&, const std::string&), const char* details = "") {
    return Verb{verb,    summary,
                example, {{"NAME", "", what, name.get(), true}},
                {},      [name, run](Context& context) { return run(context, *name); },
                details};
  };
  constexpr const char* of_the_list = "A name from: stacklab corpus list";
  std::vector<Verb> verbs = {
      {"list", "What the catalogue offers, and what is in the workspace", "stacklab corpus list", {}, {}, list, {}},
      {"get",
       "Fetch or generate a corpus into the workspace",
       "stacklab corpus get kjv\nstacklab corpus get codeparrot --files 2",
       {{"NAME", "", of_the_list, name.get(), true},
        {"--files", "N", "Of a corpus by URL: how many of its files (default 1)", files.get()}},
       {},
       [name, files](Context& context) { return get(context, *name, files->value_or(0)); },
       "Text inside packages of the distribution is fetched with apt-get and unpacked into the workspace: nothing is "
       "installed, and no root is needed. What comes by URL stays in the workspace's downloads/; what broke off goes "
       "on "
       "where it ended. Proxies: https_proxy and no_proxy of the environment."},
      make_verb(),
      named("licence", "The licence of a corpus in the workspace, as its owners word it",
            "stacklab corpus licence gcide", of_the_list, show_licence),
      named("remove", "Remove a corpus from the workspace", "stacklab corpus remove gcide --yes",
            "A corpus of the workspace", remove)};
  verbs.push_back(corpus_add_verb());
  return {"corpus", "Texts to train on", "stacklab corpus list", {}, std::move(verbs), {}, {}};
}

}  // namespace stacklab::cli
