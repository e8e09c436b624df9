#include <fmt/format.h>

#include <memory>

#include "app/cli/beside.h"
#include "app/cli/common.h"
#include "app/cli/console.h"
#include "engine/base/counted.h"
#include "engine/base/environment.h"
#include "engine/base/text.h"
#include "engine/service/data_builds.h"

namespace stacklab::cli {
namespace {

namespace fs = std::filesystem;

struct Words {
  std::string what, out, tokenizer, validation, folder;
  std::optional<std::int64_t> shard_tokens, samples;
};

Result<int> threads_of(const Common& common) {
  if (common.threads && *common.threads < 1)
    return usage_error(fmt::format("--threads: {} is less than one", *common.threads));
  return static_cast<int>(common.threads.value_or(usable_threads()));
}

void write_counts(JsonWriter& w, const ShardManifest& manifest) {
  const auto count = [&](ShardRole role, const char* documents, const char* tokens) {
    w.member(documents, manifest.documents(role));
    w.member(tokens, manifest.tokens(role));
  };
  w.member("documents", manifest.documents(ShardRole::train) + manifest.documents(ShardRole::held_out));
  w.member("tokens", manifest.tokens(ShardRole::train) + manifest.tokens(ShardRole::held_out));
  count(ShardRole::train, "train_documents", "train_tokens");
  count(ShardRole::held_out, "held_out_documents", "held_out_tokens");
  w.key("removed");
  w.begin_object();
  for (const auto& [reason, documents] : manifest.removed) w.member(reason, documents);
  w.end_object();
  w.member("tokenizer", manifest.tokenizer);
  w.member("vocab_size", manifest.vocabulary_size);
  w.member("sha256", manifest.training_sha256());
  w.member("corpus_hash", manifest.corpus_hash());
  w.key("sources");
  w.begin_array();
  for (const ShardSource& source : manifest.sources) {
    w.begin_object();
    w.member("name", source.name);
    w.member("weight", source.weight);
    w.member("documents", source.documents);
    w.member("tokens", source.tokens);
    w.member("bytes", source.text_bytes);
    w.end_object();
  }
  w.end_array();
}

std::string summary(const ShardManifest& manifest) {
  std::vector<std::vector<std::string>> rows = {{"source", "weight", "documents", "tokens", "text", "bytes a token"}};
  for (const ShardSource& source : manifest.sources)
    rows.push_back({source.name, shortest(source.weight), format_integer(source.documents),
                    format_integer(source.tokens), format_bytes(static_cast<double>(source.text_bytes)),
                    source.tokens > 0 ? fmt::format("{:.3f}", static_cast<double>(source.text_bytes) /
                                                                  static_cast<double>(source.tokens))
                                      : ""});
  std::string text = table(rows, {false, true, true, true, true, true});
  text += fmt::format("{} to train on, {} held out, by the tokenizer {} ({}); corpus hash {}\n",
                      counted(manifest.tokens(ShardRole::train), "token"),
                      format_integer(manifest.tokens(ShardRole::held_out)), manifest.tokenizer,
                      counted(manifest.vocabulary_size, "token"), manifest.corpus_hash());
  for (const auto& [reason, documents] : manifest.removed)
    text += fmt::format("{} left out: {}\n", counted(documents, "document"), reason);
  return text;
}

Status build(Context& context, const Words& words) {
  const fs::path workspace = workspace_of(context.common);
  Result<DataRecipe> recipe = recipe_of(words.what, workspace);
  if (!recipe) return tl::unexpected(recipe.error());
  const Result<int> threads = threads_of(context.common);
  if (!threads) return tl::unexpected(threads.error());
  if (words.out.empty()) return usage_error("--out is missing", "name the folder to make");
  if (!words.tokenizer.empty()) recipe->tokenizer = words.tokenizer;
  if (!words.validation.empty()) {
    const std::optional<double> fraction = parse_double(words.validation);
    if (!fraction || !(*fraction >= 0 && *fraction <= 0.9))
      return usage_error(
          fmt::format("--validation-fraction: \"{}\" is no number from 0 to 0.9", printable(words.validation)));
    recipe->validation_fraction = *fraction;
  }
  if (words.shard_tokens) {
    if (*words.shard_tokens < 1) return usage_error("--shard-tokens: at least 1");
    recipe->shard_tokens = *words.shard_tokens;
  }
  const Result<DataBuildReport> report = run_beside(
      "data", context.console.quiet(), {"text", "", 0, 0}, [&](const ReportProgress& show, std::stop_token stop) {
        return build_data(workspace, *recipe, words.out, *threads, shown_as("shards", show), stop);
      });
  if (!report) return tl::unexpected(report.error());
  context.console.print(summary(report->manifest) +
                        fmt::format("{} in {}, {}\n",
                                    counted(static_cast<std::int64_t>(report->manifest.shards.size()), "shard"),
                                    words.out, format_duration(report->seconds)));
  JsonWriter w(2);
  w.begin_object();
  write_counts(w, report->manifest);
  w.member("shards", report->manifest.shards.size());
  w.member("seconds", report->seconds);
  w.member("folder", words.out);
  w.end_object();
  context.console.print_json(w.text());
  return {};
}

Status inspect(Context& context, const Words& words) {
  const Result<int> threads = threads_of(context.common);
  if (!threads) return tl::unexpected(threads.error());
  const int samples = static_cast<int>(std::clamp<std::int64_t>(words.samples.value_or(2), 0, 1000));
  const Result<ShardInspection> seen = run_beside(
      "data", context.console.quiet(), {"shards", "", 0, 0}, [&](const ReportProgress& show, std::stop_token stop) {
        return inspect_data(words.folder, samples, *threads, shown_as("shards", show), stop);
      });
  if (!seen) return tl::unexpected(seen.error());
  const ShardManifest& manifest = seen->manifest;
  std::string text = summary(manifest);
  std::vector<std::vector<std::string>> rows = {{"shard", "role", "source", "documents", "tokens", "bytes", "SHA-256"}};
  JsonWriter w(2);
  w.begin_object();
  w.member("ok", !seen->fault);
  write_counts(w, manifest);
  w.key("shards");
  w.begin_array();
  for (const ShardRecord& shard : manifest.shards) {
    const std::string& source = manifest.sources[shard.source].name;
    rows.push_back({shard.path, std::string(to_string(shard.role)), source, format_integer(shard.documents),
                    format_integer(shard.tokens), format_integer(shard.bytes), shard.sha256.substr(0, 16)});
    w.begin_object();
    w.member("path", shard.path);
    w.member("role", to_string(shard.role));
    w.member("source", source);
    w.member("documents", shard.documents);
    w.member("tokens", shard.tokens);
    w.member("bytes", shard.bytes);
    w.member("sha256", shard.sha256);
    w.end_object();
  }
  w.end_array();
  w.key("samples");
  w.begin_array();
  text += table(rows, {false, false, false, true, true, true, false});
  for (const ShardSample& sample : seen->samples) {
    text += fmt::format("\n{}, {}, {}: {}\n", sample.source, to_string(sample.role), counted(sample.tokens, "token"),
                        printable(sample.text, 300));
    w.begin_object();
    w.member("source", sample.source);
    w.member("role", to_string(sample.role));
    w.member("tokens", sample.tokens);
    w.member("text", sample.text);
    w.end_object();
  }
  w.end_array();
  if (seen->fault) {
    w.member("error", seen->fault->what);
    w.member("remedy", seen->fault->remedy);
  }
  w.end_object();
  context.console.print(text + (seen->fault ? "" : "\nevery file is as the manifest says\n"));
  context.console.print_json(w.text());
  return seen->fault ? Status(tl::unexpected(*seen->fault)) : Status();
}

}  // namespace

Verb data_verb() {
  const auto words = std::make_shared<Words>();
  Verb build_verb{
      "build",
      "Turn texts into token shards that a run reads",
      "stacklab data build kjv --out shards/kjv\n  stacklab data build letters.txt --tokenizer bpe-4096 --out "
      "shards/letters",
      {{"RECIPE", "", "A recipe (.json), a file or folder of text, or a corpus", &words->what, true},
       {"--out", "DIR", "The folder to make", &words->out},
       {"--tokenizer", "NAME", "bytes, or a tokenizer of the workspace (default: the recipe's, else bytes)",
        &words->tokenizer},
       {"--validation-fraction", "F", "Share of documents held out, by hash (default: the recipe's, else 0.02)",
        &words->validation},
       {"--shard-tokens", "N", "Tokens with which a shard is closed (default: 67108864)", &words->shard_tokens}},
      {},
      [words](Context& context) { return build(context, *words); },
      "A recipe is JSON: {\"sources\": [\"kjv\", {\"path\": \"letters.jsonl\", \"field\": \"body\", \"weight\": 2}],\n"
      "\"held_out\": [\"exam.txt\"], \"tokenizer\": \"bytes\", \"validation_fraction\": 0.02, \"shard_tokens\": "
      "67108864}.\n"
      "Weights are of tokens. The same recipe and texts give the same shards, on any number of threads."};
  Verb inspect_verb{"inspect",
                    "Verify token shards, count them, show some of their text",
                    "stacklab data inspect shards/kjv --samples 3",
                    {{"DIR", "", "A folder of shards", &words->folder, true},
                     {"--samples", "N", "Documents to show of each source and side (default: 2)", &words->samples}},
                    {},
                    [words](Context& context) { return inspect(context, *words); },
                    {}};
  return {"data",
          "Token shards",
          "stacklab data build kjv --out shards/kjv",
          {},
          {std::move(build_verb), std::move(inspect_verb)},
          {},
          {}};
}

}  // namespace stacklab::cli
