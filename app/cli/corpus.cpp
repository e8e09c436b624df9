#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "app/cli/beside.h"
#include "app/cli/common.h"
#include "app/cli/console.h"
#include "engine/base/text.h"
#include "engine/service/corpora.h"

namespace stacklab::cli {
namespace {

namespace fs = std::filesystem;

Status list(Context& context) {
  const Result<std::vector<CorpusEntry>> entries = corpus_catalogue(workspace_of(context.common));
  if (!entries) return tl::unexpected(entries.error());
  std::vector<std::vector<std::string>> rows = {{"name", "text", "here", "from", "licence", "title"}};
  JsonWriter w(2);
  w.begin_object();
  w.key("corpora");
  w.begin_array();
  for (const CorpusEntry& e : *entries) {
    rows.push_back({e.name, "about " + format_bytes(static_cast<double>(e.about_bytes)), e.present ? "yes" : "no",
                    e.source, e.licence, e.title});
    w.begin_object();
    w.member("name", e.name);
    w.member("title", e.title);
    w.member("licence", e.licence);
    w.member("source", e.source);
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

Result<Corpus> fetch(const std::string& name, const fs::path& workspace, bool quiet) {
  return run_beside(name, quiet, {"text", "looking for " + name, 0, 0},
                    [&](const ReportProgress& report, std::stop_token stop) {
                      return ensure_corpus(
                          name, workspace,
                          [&](std::string_view detail, std::int64_t done, std::int64_t total) {
                            report({"text", std::string(detail), done, total});
                          },
                          stop);
                    });
}

Status get(Context& context, const std::string& name) {
  const fs::path workspace = workspace_of(context.common);
  const Result<Corpus> corpus = fetch(name, workspace, context.console.quiet());
  if (!corpus) return tl::unexpected(corpus.error());
  const CorpusInfo& info = corpus->info();
  const fs::path folder = workspace / "data" / name;
  std::vector<std::string> files;
  std::error_code error;
  for (fs::directory_iterator i(folder, error), end; !error && i != end; i.increment(error))
    files.push_back(i->path().filename().string());
  std::sort(files.begin(), files.end());

  context.console.print(fmt::format("{}: {}, {} documents, {}; {}\nlicence: {}\nSHA-256 {}\nstored in {}\n", info.name,
                                    info.title, format_integer(info.documents),
                                    format_bytes(static_cast<double>(info.bytes)), info.origin, info.licence,
                                    info.sha256, folder.string()));
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
  w.end_object();
  context.console.print_json(w.text());
  return {};
}

}  // namespace

Verb corpus_verb() {
  const auto name = std::make_shared<std::string>();
  Verb list_verb{
      "list", "What the catalogue offers, and what is in the workspace", "stacklab corpus list", {}, {}, list, {}};
  Verb get_verb{"get",
                "Fetch or generate a corpus into the workspace",
                "stacklab corpus get kjv",
                {{"NAME", "", "A name from: stacklab corpus list", name.get(), true}},
                {},
                [name](Context& context) { return get(context, *name); },
                {}};
  return {"corpus", "Texts to train on", "stacklab corpus list", {}, {std::move(list_verb), std::move(get_verb)}, {},
          {}};
}

}  // namespace stacklab::cli
