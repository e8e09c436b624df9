#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "app/cli/beside.h"
#include "app/cli/common.h"
#include "app/cli/console.h"
#include "engine/base/atomic_file.h"
#include "engine/base/counted.h"
#include "engine/base/environment.h"
#include "engine/base/text.h"
#include "engine/service/tokenizers.h"

namespace stacklab::cli {
namespace {

constexpr std::int64_t largest_text = std::int64_t{1} << 30;

struct TrainWords {
  std::vector<std::string> inputs, specials;
  std::optional<std::int64_t> vocabulary, min_frequency, max_pieces;
  std::string out, split;
  bool no_specials = false, nfc = false;
};

Result<TokenizerJob> job_of(const TrainWords& words, const Common& common) {
  TokenizerJob job;
  job.inputs.assign(words.inputs.begin(), words.inputs.end());
  job.folder = words.out;
  job.replace = common.yes;
  if (common.threads && *common.threads < 1)
    return usage_error(fmt::format("--threads: {} is less than one", *common.threads));
  job.threads = static_cast<int>(common.threads.value_or(usable_threads()));
  TokenizerTraining& training = job.training;
  if (!words.vocabulary) return usage_error("--vocab is missing", "32768 suits a model of 100 million parameters");
  training.vocabulary_size = *words.vocabulary;
  training.nfc = words.nfc;
  training.min_frequency = words.min_frequency.value_or(training.min_frequency);
  training.max_pieces = words.max_pieces.value_or(training.max_pieces);
  if (training.max_pieces < 1000) return usage_error("--max-pieces: less than 1000 teach nothing");
  if (words.no_specials && !words.specials.empty())
    return usage_error("--special and --no-specials exclude each other");
  if (words.no_specials || !words.specials.empty()) training.specials = words.specials;
  if (!words.split.empty()) {
    const std::optional<Split> split = split_from_string(words.split);
    if (!split)
      return usage_error(fmt::format("--split: there is no \"{}\"", printable(words.split)),
                         fmt::format("known are {}", fmt::join(split_names(), ", ")));
    training.split = *split;
  }
  return job;
}

Status train(Context& context, const TrainWords& words) {
  const Result<TokenizerJob> job = job_of(words, context.common);
  if (!job) return tl::unexpected(job.error());
  const Result<TokenizerReport> report =
      run_beside("tokenizer", context.console.quiet(), {"counting", "", 0, 0},
                 [&](const ReportProgress& show, std::stop_token stop) {
                   return train_tokenizer_from(
                       *job,
                       [&](std::string_view what, std::int64_t done, std::int64_t total) {
                         show({std::string(what), "", done, total});
                       },
                       stop);
                 });
  if (!report) return tl::unexpected(report.error());
  const TrainedTokenizer& trained = report->trained;
  const auto vocabulary = static_cast<std::int64_t>(trained.model.vocabulary.size());
  if (vocabulary < job->training.vocabulary_size)
    context.console.warn(fmt::format("the text has no more pairs to merge: the vocabulary is {}, not {}", vocabulary,
                                     job->training.vocabulary_size));
  if (trained.forgotten > 0)
    context.console.note(fmt::format("{} rare pieces were forgotten to keep memory bounded (--max-pieces)",
                                     format_integer(trained.forgotten)));
  context.console.print(fmt::format("{} from {} of text in {}, {}; {:.3f} bytes a token; {}\nstored in {}\n",
                                    counted(vocabulary, "token"), format_bytes(static_cast<double>(trained.bytes)),
                                    counted(report->documents, "document"), counted(trained.pieces, "different piece"),
                                    trained.bytes_per_token, format_duration(report->seconds), words.out));
  JsonWriter w(2);
  w.begin_object();
  w.member("vocab_size", vocabulary);
  w.member("merges", trained.model.merges.size());
  w.member("seconds", report->seconds);
  w.member("bytes_per_token", trained.bytes_per_token);
  w.member("documents", report->documents);
  w.member("bytes", trained.bytes);
  w.member("pieces", trained.pieces);
  w.member("pieces_forgotten", trained.forgotten);
  w.member("folder", words.out);
  w.end_object();
  context.console.print_json(w.text());
  return {};
}

struct CodeWords {
  std::string tokenizer, text, input, out;
  std::vector<std::string> ids;
  bool specials = false;
};

// Of --NAME itself, or of the file.
Result<std::string> given_text(const CodeWords& words, const char* name, const std::string& direct, bool is_given) {
  if (is_given && !words.input.empty()) return usage_error(fmt::format("{} and --input exclude each other", name));
  if (is_given) return direct;
  if (words.input.empty()) return usage_error(fmt::format("nothing to do: give {} or --input FILE", name));
  return read_file(words.input, largest_text);
}

Status encode(Context& context, const CodeWords& words) {
  const Result<std::string> text = given_text(words, "--text", words.text, !words.text.empty());
  if (!text) return tl::unexpected(text.error());
  const Result<Tokenizer> tokenizer = read_tokenizer(words.tokenizer);
  if (!tokenizer) return tl::unexpected(tokenizer.error());
  std::vector<TokenId> ids;
  const Status encoded = tokenizer->encode(*text, words.specials ? Specials::recognised : Specials::as_text, ids);
  if (!encoded) return encoded;
  context.console.print(fmt::format("{}\n", fmt::join(ids, " ")));
  JsonWriter w;
  w.begin_object();
  w.key("ids");
  w.begin_array();
  for (const TokenId id : ids) w.value(id);
  w.end_array();
  w.member("tokens", ids.size());
  w.member("bytes", text->size());
  w.key("bytes_per_token");
  ids.empty() ? w.null() : w.value(static_cast<double>(text->size()) / static_cast<double>(ids.size()));
  w.end_object();
  context.console.print_json(w.text());
  return {};
}

Status decode(Context& context, const CodeWords& words) {
  const Result<std::string> list =
      given_text(words, "--ids", fmt::format("{}", fmt::join(words.ids, " ")), !words.ids.empty());
  if (!list) return tl::unexpected(list.error());
  std::string spaced = *list;
  std::replace_if(
      spaced.begin(), spaced.end(),
      [](char c) { return c == ',' || c == '\n' || c == '\r' || c == '\t' || c == '[' || c == ']'; }, ' ');
  std::vector<TokenId> ids;
  for (const std::string& word : split(spaced, ' ')) {
    if (word.empty()) continue;
    const std::optional<std::int64_t> id = parse_int(word);
    if (!id || *id < 0 || *id > INT32_MAX) return usage_error(fmt::format("\"{}\" is no token id", printable(word)));
    ids.push_back(static_cast<TokenId>(*id));
  }
  const Result<Tokenizer> tokenizer = read_tokenizer(words.tokenizer);
  if (!tokenizer) return tl::unexpected(tokenizer.error());
  const Result<std::string> text = tokenizer->decode(ids);
  if (!text) return tl::unexpected(text.error());
  if (!words.out.empty()) {
    if (const Status sure = confirm_replacing(context, words.out); !sure) return sure;
    if (const Status written = write_file_atomically(words.out, *text); !written) return written;
    context.console.note(fmt::format("{} written to {}", format_bytes(static_cast<double>(text->size())), words.out));
  } else {
    context.console.print(*text + "\n");
  }
  JsonWriter w(2);
  w.begin_object();
  w.member("text", *text);
  w.member("tokens", ids.size());
  w.member("bytes", text->size());
  w.end_object();
  context.console.print_json(w.text());
  return {};
}

void show_model(Context& context, const Tokenizer& tokenizer, const std::string& where) {
  const TokenizerModel& model = tokenizer.model();
  const std::string split(tokenizer.split() ? to_string(*tokenizer.split()) : "");
  const auto longest = std::max_element(model.vocabulary.begin(), model.vocabulary.end(),
                                        [](const std::string& a, const std::string& b) { return a.size() < b.size(); });
  std::string specials;
  for (const AddedToken& token : model.added)
    specials += fmt::format("\n  {:>8}  {}", token.id, printable(token.content));
  context.console.print(
      fmt::format("{}: {}, {}\nsplit: {}\nnormalised: {}\nwhole pieces before merges: {}\nlongest token: {}\n"
                  "added tokens:{}\n",
                  where, counted(tokenizer.vocabulary_size(), "token"),
                  counted(static_cast<std::int64_t>(model.merges.size()), "merge"),
                  split.empty() ? "of its own, cannot encode: " + printable(model.pattern, 200) : split,
                  model.nfc ? "NFC" : "no", model.ignore_merges ? "yes" : "no",
                  counted(static_cast<std::int64_t>(longest->size()), "byte"), specials.empty() ? " none" : specials));
  JsonWriter w(2);
  w.begin_object();
  w.member("vocab_size", tokenizer.vocabulary_size());
  w.member("merges", model.merges.size());
  w.key("split");
  split.empty() ? w.null() : w.value(split);
  w.member("pattern", model.pattern);
  w.member("nfc", model.nfc);
  w.member("ignore_merges", model.ignore_merges);
  w.member("longest_token_bytes", longest->size());
  w.key("added_tokens");
  w.begin_array();
  for (const AddedToken& token : model.added) {
    w.begin_object();
    w.member("id", token.id);
    w.member("content", token.content);
    w.member("special", token.special);
    w.end_object();
  }
  w.end_array();
  w.end_object();
  context.console.print_json(w.text());
}

Verb train_tokenizer_verb() {
  const auto words = std::make_shared<TrainWords>();
  return {
      "train",
      "Learn a byte-level BPE vocabulary from text",
      "stacklab tokenizer train --input workspace/data/kjv --vocab 4096 --out workspace/tokenizers/kjv\n"
      "stacklab tokenizer train --input a.txt b.txt --vocab 32768 --split qwen2 --out tok",
      {{"--input", "F...", "Files of text, also .gz and .zst (a NUL byte ends a document), folders of corpora",
        &words->inputs, true, true},
       {"--vocab", "N", "Tokens in all, with 256 bytes and the special tokens", &words->vocabulary, false},
       {"--out", "DIR", "The folder to write; --yes replaces a tokenizer there, and nothing else", &words->out, true},
       {"--split", "NAME", "How text is cut into pieces: gpt2, qwen2, llama3 (default), cl100k, nanochat",
        &words->split},
       {"--special", "TOKEN", "A special token instead of the usual ones; may be given again and again",
        &words->specials},
       {"--no-specials", "", "No special tokens", &words->no_specials},
       {"--nfc", "", "Normalise text to form C first (text is then not kept byte for byte)", &words->nfc},
       {"--min-frequency", "N", "Merge no pair that is rarer", &words->min_frequency},
       {"--max-pieces", "N", "Different pieces kept in memory", &words->max_pieces}},
      {},
      [words](Context& context) { return train(context, *words); },
      "The result depends on the text alone, not on --threads."};
}

Verb encode_verb() {
  const auto words = std::make_shared<CodeWords>();
  return {
      "encode",
      "Text to token ids",
      "stacklab tokenizer encode tok --text \"In the beginning\"\nstacklab tokenizer encode tok --input text.txt "
      "--json",
      {{"TOKENIZER", "", "A folder with a tokenizer.json, or the file", &words->tokenizer, true},
       {"--text", "TEXT", "The text", &words->text},
       {"--input", "FILE", "A file with the text", &words->input},
       {"--specials", "", "Special tokens in the text become control tokens; else they are text", &words->specials}},
      {},
      [words](Context& context) { return encode(context, *words); },
      {}};
}

Verb decode_verb() {
  const auto words = std::make_shared<CodeWords>();
  return {"decode",
          "Token ids to text",
          "stacklab tokenizer decode tok --ids 40 262 318",
          {{"TOKENIZER", "", "A folder with a tokenizer.json, or the file", &words->tokenizer, true},
           {"--ids", "ID...", "The ids", &words->ids, false, true},
           {"--input", "FILE", "A file of ids, apart by spaces, commas or lines", &words->input},
           {"--out", "FILE", "Write the exact bytes there; --yes replaces a file", &words->out}},
          {},
          [words](Context& context) { return decode(context, *words); },
          {}};
}

Verb inspect_verb() {
  const auto words = std::make_shared<CodeWords>();
  return {"inspect",
          "What a tokenizer is made of",
          "stacklab tokenizer inspect tok",
          {{"TOKENIZER", "", "A folder with a tokenizer.json, or the file", &words->tokenizer, true}},
          {},
          [words](Context& context) -> Status {
            const Result<Tokenizer> tokenizer = read_tokenizer(words->tokenizer);
            if (!tokenizer) return tl::unexpected(tokenizer.error());
            show_model(context, *tokenizer, words->tokenizer);
            return {};
          },
          {}};
}

Verb import_verb() {
  const auto words = std::make_shared<CodeWords>();
  return {
      "import",
      "Take in a byte-level BPE tokenizer.json made elsewhere",
      "stacklab tokenizer import Downloads/tokenizer.json --out workspace/tokenizers/theirs",
      {{"TOKENIZER", "", "A tokenizer.json, or a folder with one", &words->tokenizer, true},
       {"--out", "DIR", "The folder to write; --yes replaces a tokenizer there, and nothing else", &words->out, true}},
      {},
      [words](Context& context) -> Status {
        const Result<Tokenizer> tokenizer = import_tokenizer(words->tokenizer, words->out, context.common.yes);
        if (!tokenizer) return tl::unexpected(tokenizer.error());
        show_model(context, *tokenizer, words->out);
        return {};
      },
      "What would encode differently here is refused. A post-processor, which adds tokens around a text, is left out."};
}

}  // namespace

Verb tokenizer_verb() {
  return {"tokenizer",
          "Vocabularies: learn, look at, use and import them",
          "stacklab tokenizer train --input workspace/data/kjv --vocab 4096 --out workspace/tokenizers/kjv",
          {},
          {decode_verb(), encode_verb(), import_verb(), inspect_verb(), train_tokenizer_verb()},
          {},
          {}};
}

}  // namespace stacklab::cli
