#include "engine/bench/tokenizer.h"

#include <array>
#include <cmath>
#include <limits>
#include <string_view>

#include "engine/base/environment.h"
#include "engine/base/philox.h"
#include "engine/bench/timing.h"

namespace stacklab {
namespace {

constexpr std::size_t document_bytes = 2048;
constexpr double words = 60000;

// Numbers in the order in which they are asked for.
class Random {
 public:
  std::uint32_t next() {
    if (used_ == 4) block_ = source_.block(at_++), used_ = 0;
    return block_[static_cast<std::size_t>(used_++)];
  }
  std::uint32_t below(std::uint32_t n) { return next() % n; }
  double uniform() { return next() * 0x1p-32; }

 private:
  Philox source_{20260101, 1};
  PhiloxBlock block_ = {};
  std::uint64_t at_ = 0;
  int used_ = 4;
};

// The same word for the same rank, longer ones for rarer ranks.
std::string word_of(std::uint32_t rank) {
  static constexpr std::array<std::string_view, 32> syllables = {
      "a",  "the", "in",  "er", "an", "re", "on",  "at", "en", "or", "ti", "es", "st", "ar", "al", "te",
      "ed", "it",  "ing", "le", "co", "de", "ion", "is", "ra", "ro", "li", "ri", "ne", "io", "me", "ver"};
  std::string word;
  for (std::uint32_t rest = rank + 1; rest > 0; rest /= 32) word += syllables[(rest * 7 + rank) % 32];
  return word;
}

std::string sentence(Random& random) {
  std::string text;
  const std::uint32_t length = 4 + random.below(16);
  for (std::uint32_t i = 0; i < length; ++i) {
    if (i > 0) text += random.below(12) == 0 ? ", " : " ";
    if (random.below(40) == 0) {
      text += std::to_string(random.below(3000));
      continue;
    }
    // Frequencies of 1/n: the logarithm of the rank is uniform.
    std::string word = word_of(static_cast<std::uint32_t>(std::exp(random.uniform() * std::log(words))) - 1);
    if (i == 0 || random.below(25) == 0) word[0] = static_cast<char>(word[0] - 'a' + 'A');
    text += word;
    if (random.below(60) == 0) text += "'s";
  }
  return text + (random.below(8) == 0 ? "?" : ".");
}

}  // namespace

std::vector<std::string> generated_documents(std::int64_t bytes) {
  Random random;
  std::vector<std::string> documents;
  for (std::int64_t made = 0; made < bytes; made += std::ssize(documents.back())) {
    std::string& text = documents.emplace_back();
    const auto wanted =
        static_cast<std::size_t>(std::min<std::int64_t>(bytes - made, static_cast<std::int64_t>(document_bytes)));
    while (text.size() < wanted) text += sentence(random) + (random.below(5) == 0 ? "\n\n" : " ");
  }
  return documents;
}

Result<TokenizerBench> bench_tokenizer(const TokenizerBenchOptions& options) {
  const std::vector<std::string> made =
      options.documents.empty() ? generated_documents(options.bytes) : std::vector<std::string>();
  const std::vector<std::string>& documents = options.documents.empty() ? made : options.documents;
  const std::vector<std::string_view> views(documents.begin(), documents.end());
  TokenizerBench bench;
  bench.documents = std::ssize(documents);
  for (const std::string& d : documents) bench.bytes += std::ssize(d);

  bench::Team team(options.threads), alone(1);
  std::int64_t tokens = 0;
  const auto add = [&](const char* task, int threads, double seconds) {
    bench.rows.push_back({task, threads, seconds, bench.bytes, tokens, peak_resident_bytes()});
    if (options.report) options.report(task, seconds);
  };
  const auto repeat = [&](auto&& f) {
    double best = std::numeric_limits<double>::infinity();
    const double begin = steady_seconds();
    for (int round = 0; round < 3 || steady_seconds() - begin < options.seconds; ++round) {
      const double from = steady_seconds();
      f();
      best = std::min(best, steady_seconds() - from);
    }
    return best;
  };

  TokenizerTraining training;
  training.vocabulary_size = options.vocabulary_size;
  training.split = options.split;
  std::size_t at = 0;
  const double begin = steady_seconds();
  auto trained = train_tokenizer(
      training,
      [&](std::string_view& document) -> Result<bool> {
        if (at == views.size()) return false;
        document = views[at++];
        return true;
      },
      team, [](std::string_view, std::int64_t, std::int64_t) {}, {});
  if (!trained) return tl::unexpected(trained.error());
  const double training_seconds = steady_seconds() - begin;
  auto tokenizer = Tokenizer::create(std::move(trained->model));
  if (!tokenizer) return tl::unexpected(tokenizer.error());
  bench.vocabulary = tokenizer->vocabulary_size();

  Result<std::vector<std::vector<TokenId>>> ids;
  const double alone_seconds = repeat([&] { ids = tokenizer->encode_batch(views, Specials::as_text, alone); });
  if (!ids) return tl::unexpected(ids.error());
  for (const std::vector<TokenId>& document : *ids) tokens += std::ssize(document);
  add("train", options.threads, training_seconds);
  add("encode", 1, alone_seconds);
  if (options.threads > 1)
    add("encode", options.threads, repeat([&] { ids = tokenizer->encode_batch(views, Specials::as_text, team); }));
  bool same = true;
  add("decode", 1, repeat([&] {
        for (std::size_t i = 0; i < views.size(); ++i) {
          const Result<std::string> text = tokenizer->decode((*ids)[i]);
          same = same && text && *text == views[i];
        }
      }));
  if (!same) return failed("what was decoded is not what was encoded", "please report it");
  return bench;
}

}  // namespace stacklab
