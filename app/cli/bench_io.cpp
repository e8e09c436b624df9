// The benches of what surrounds training: the tokenizer and the store.
#include <fmt/format.h>

#include <memory>

#include "app/cli/bench.h"
#include "app/cli/common.h"
#include "app/cli/console.h"
#include "engine/base/atomic_file.h"
#include "engine/base/environment.h"
#include "engine/base/text.h"
#include "engine/service/benches.h"

namespace stacklab::cli {
namespace {

constexpr std::int64_t largest_input = std::int64_t{256} << 20;  // is held in memory

struct TokenizerOptions {
  std::string input;
  std::optional<std::int64_t> vocabulary, megabytes;
};

std::string megabytes_per_second(double bytes, double seconds) {
  return seconds > 0 ? fmt::format("{:.1f}", bytes / seconds * 1e-6) : "–";
}

Status tokenizer(Context& context, const TokenizerOptions& options) {
  TokenizerBenchOptions o;
  o.threads = static_cast<int>(context.common.threads.value_or(usable_threads()));
  if (o.threads < 1) return usage_error(fmt::format("--threads: {} is less than one", o.threads));
  const std::int64_t megabytes = options.megabytes.value_or(8);
  if (megabytes < 1 || megabytes > largest_input >> 20)
    return usage_error(fmt::format("--megabytes: {} is not between 1 and {}", megabytes, largest_input >> 20));
  o.bytes = megabytes * 1'000'000;
  o.vocabulary_size = options.vocabulary.value_or(o.vocabulary_size);
  if (!options.input.empty()) {
    Result<std::string> text = read_file(options.input, largest_input);
    if (!text) return tl::unexpected(text.error());
    // As everywhere, a NUL byte ends a document.
    o.documents = split(*text, '\0');
    if (trim(*text).empty()) return failed(fmt::format("{}: there is no text in it", options.input));
  }
  o.report = [&](const std::string& task, double seconds) {
    context.console.note(fmt::format("{}: {:.3f} s", task, seconds));
  };
  const Result<TokenizerBench> bench = bench_tokenizer(o);
  if (!bench) return tl::unexpected(bench.error());

  std::vector<std::vector<std::string>> rows = {{"task", "threads", "seconds", "MB/s", "tokens/s", "peak memory"}};
  JsonWriter w(2);
  w.begin_object();
  w.member("cpu", cpu_model());
  w.member("input", options.input.empty() ? "generated" : options.input);
  w.member("documents", bench->documents);
  w.member("vocabulary", bench->vocabulary);
  w.key("rows");
  w.begin_array();
  for (const TokenizerMeasurement& row : bench->rows) {
    const auto bytes = static_cast<double>(row.bytes), tokens = static_cast<double>(row.tokens);
    rows.push_back({row.task, std::to_string(row.threads), fmt::format("{:.3f}", row.seconds),
                    megabytes_per_second(bytes, row.seconds), format_count(tokens / row.seconds),
                    format_bytes(static_cast<double>(row.peak_bytes))});
    w.begin_object();
    w.member("task", row.task);
    w.member("threads", row.threads);
    w.member("seconds", row.seconds);
    w.member("bytes", row.bytes);
    w.member("tokens", row.tokens);
    w.member("bytes_per_token", row.tokens > 0 ? bytes / tokens : 0.0);
    w.member("bytes_per_second", bytes / row.seconds);
    w.member("tokens_per_second", tokens / row.seconds);
    w.member("peak_bytes", row.peak_bytes);
    w.end_object();
  }
  w.end_array();
  w.end_object();
  context.console.print(fmt::format("{}: {} of {} text in {} documents, a vocabulary of {}\n", cpu_model(),
                                    format_bytes(static_cast<double>(bench->bytes)),
                                    options.input.empty() ? "generated" : "this", format_integer(bench->documents),
                                    format_integer(bench->vocabulary)) +
                        table(rows, {false, true, true, true, true, true}));
  context.console.print_json(w.text());
  return {};
}

struct StoreOptions {
  std::optional<std::int64_t> steps;
};

Status store(Context& context, const StoreOptions& options) {
  StoreBenchOptions o;
  o.folder = workspace_of(context.common);
  o.steps = options.steps.value_or(o.steps);
  if (o.steps < 1 || o.steps > 10'000'000)
    return usage_error(fmt::format("--steps: {} is not between 1 and 10,000,000", o.steps));
  const auto measured = bench_store(o);
  if (!measured) return tl::unexpected(measured.error());
  std::vector<std::vector<std::string>> rows = {{"task", "values", "seconds", "values/s", "data base", "peak memory"}};
  JsonWriter w(2);
  w.begin_object();
  w.member("cpu", cpu_model());
  w.member("steps", o.steps);
  w.key("rows");
  w.begin_array();
  for (const StoreMeasurement& row : *measured) {
    const double rate = row.seconds > 0 ? static_cast<double>(row.rows) / row.seconds : 0;
    rows.push_back({row.task, format_integer(row.rows), fmt::format("{:.4f}", row.seconds), format_count(rate),
                    format_bytes(static_cast<double>(row.bytes)), format_bytes(static_cast<double>(row.peak_bytes))});
    w.begin_object();
    w.member("task", row.task);
    w.member("values", row.rows);
    w.member("seconds", row.seconds);
    w.member("values_per_second", rate);
    w.member("database_bytes", row.bytes);
    w.member("peak_bytes", row.peak_bytes);
    w.end_object();
  }
  w.end_array();
  w.end_object();
  context.console.print(fmt::format("One run of {} steps with 8 metrics each, on the disk of {}\n",
                                    format_integer(o.steps), o.folder.string()) +
                        table(rows, {false, true, true, true, true, true}));
  context.console.print_json(w.text());
  return {};
}

}  // namespace

Verb bench_tokenizer_verb() {
  const auto options = std::make_shared<TokenizerOptions>();
  return {"tokenizer",
          "Learning a tokenizer, encoding and decoding: bytes and tokens per second",
          "stacklab bench tokenizer --input book.txt --vocab 8192 --threads 2",
          {{"--input", "FILE", "A text (default: one is generated)", &options->input},
           {"--vocab", "N", "Size of the vocabulary to learn (default: 8192)", &options->vocabulary},
           {"--megabytes", "N", "Of generated text (default: 8)", &options->megabytes}},
          {},
          [options](Context& context) { return tokenizer(context, *options); },
          "Encoding and decoding are repeated, and the fastest round counts."};
}

Verb bench_store_verb() {
  const auto options = std::make_shared<StoreOptions>();
  return {"store",
          "Reporting metrics, committing them, and reading them back: values per second",
          "stacklab bench store --steps 100000 --workspace w",
          {{"--steps", "N", "Of the run that is written and read (default: 100000)", &options->steps}},
          {},
          [options](Context& context) { return store(context, *options); },
          "In a folder of the workspace that is removed at the end. report is what a training loop waits for."};
}

}  // namespace stacklab::cli
