#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "app/cli/beside.h"
#include "app/cli/common.h"
#include "app/cli/console.h"
#include "engine/base/counted.h"
#include "engine/base/text.h"
#include "engine/service/data_builds.h"

namespace stacklab::cli {
namespace {

namespace fs = std::filesystem;

struct Words {
  std::vector<std::string> inputs;
  std::string name, separator, field, licence;
};

Status add(Context& context, const Words& words) {
  const fs::path workspace = workspace_of(context.common);
  ImportRequest request;
  request.inputs.assign(words.inputs.begin(), words.inputs.end());
  request.name = words.name;
  request.licence = words.licence;
  if (!words.field.empty()) request.reading.field = words.field;
  request.reading.blank_lines = words.separator == "blank-line";
  if (!request.reading.blank_lines) {
    Result<std::string> separator = unescaped(words.separator);
    if (!separator) return tl::unexpected(separator.error());
    request.reading.separator = std::move(*separator);
  }
  const Result<ImportReport> report = run_beside(
      "corpus", context.console.quiet(), {"text", "", 0, 0}, [&](const ReportProgress& show, std::stop_token stop) {
        return import_corpus(
            workspace, request,
            [&](std::string_view detail, std::int64_t done, std::int64_t total) {
              show({"text", std::string(detail), done, total});
            },
            stop);
      });
  if (!report) return tl::unexpected(report.error());
  const CorpusInfo& info = report->info;
  if (!report->left_out.empty()) {
    std::string some;
    for (std::size_t i = 0; i < std::min<std::size_t>(report->left_out.size(), 5); ++i)
      some += (i ? ", " : "") + printable(report->left_out[i], 60);
    if (report->left_out.size() > 5) some += ", ...";
    context.console.warn(fmt::format("left out, not being of a kind that is known: {}: {}",
                                     counted(static_cast<std::int64_t>(report->left_out.size()), "file"), some));
  }
  const fs::path folder = workspace / "data" / info.name;
  context.console.print(fmt::format("{}: {}, {}, from {}; licence: {}\nSHA-256 {}\nstored in {}\n", info.name,
                                    counted(info.documents, "document"), format_bytes(static_cast<double>(info.bytes)),
                                    info.origin, info.licence, info.sha256, folder.string()));
  JsonWriter w(2);
  w.begin_object();
  w.member("name", info.name);
  w.member("documents", info.documents);
  w.member("bytes", info.bytes);
  w.member("sha256", info.sha256);
  w.member("licence", info.licence);
  w.member("files", report->files);
  w.key("left_out");
  w.begin_array();
  for (const std::string& file : report->left_out) w.value(file);
  w.end_array();
  w.member("folder", folder.string());
  w.end_object();
  context.console.print_json(w.text());
  return {};
}

}  // namespace

Verb corpus_add_verb() {
  const auto words = std::make_shared<Words>();
  return {
      "add",
      "Copy files of your own into the workspace, as a corpus",
      "stacklab corpus add letters.txt\n  stacklab corpus add posts.jsonl.zst --field body --name posts\n"
      "  stacklab corpus add notes/ --separator blank-line",
      {{"INPUT", "", "Files, or folders with all that is in them", &words->inputs, true, true},
       {"--name", "NAME", "Of the corpus (default: the first input's)", &words->name},
       {"--separator", "TEXT",
        "Ends a document of plain text; \\n, \\t, \\0 and \\\\ are understood, blank-line is a line of nothing "
        "(default: a file is a document)",
        &words->separator},
       {"--field", "KEY", "Of JSON lines and Parquet: where the text is; a.b is b inside a (default: text)",
        &words->field},
       {"--licence", "TEXT", "What may be done with the text", &words->licence}},
      {},
      [words](Context& context) { return add(context, *words); },
      "Plain text, JSON lines (.jsonl, .ndjson, .json) and Parquet (.parquet) are read, as they are or packed (.gz,\n"
      ".zst). Every byte is kept. A line of JSON has at most 32 MiB. In folders, files of other kinds are left out and "
      "named."};
}

}  // namespace stacklab::cli
