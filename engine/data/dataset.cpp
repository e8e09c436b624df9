#include "engine/data/dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "engine/base/atomic_file.h"
#include "engine/base/sha256.h"
#include "engine/base/thread_team.h"
#include "engine/tokenizer/tokenizer_json.h"

namespace stacklab {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t largest_tokenizer = std::int64_t{1} << 28;

// Every shard of a part, verified.
struct Opened {
  ShardManifest manifest;
  std::vector<std::shared_ptr<const Shard>> shards;
};

Result<Opened> open_part(const fs::path& folder, ThreadTeam& team, const CorpusProgress& progress,
                         std::stop_token stop) {
  Result<ShardManifest> manifest = read_shard_manifest(folder);
  if (!manifest) return tl::unexpected(manifest.error());
  std::int64_t total = 0, done = 0;
  for (const ShardRecord& shard : manifest->shards) total += shard.bytes;
  std::mutex mutex;
  const auto report = [&](std::int64_t bytes) {
    const std::lock_guard lock(mutex);
    done += bytes;
    if (progress) progress("verifying the shards in " + folder.filename().string(), done, total);
  };
  report(0);
  std::vector<std::optional<Result<Shard>>> shards(manifest->shards.size());
  std::atomic<std::size_t> next = 0;
  team.for_each(team.threads(), [&](std::int64_t) {
    for (std::size_t i = next++; i < shards.size(); i = next++) {
      shards[i].emplace(Shard::open(folder, manifest->shards[i], manifest->vocabulary_size, stop));
      report(manifest->shards[i].bytes);
    }
  });
  Opened opened{std::move(*manifest), {}};
  for (std::optional<Result<Shard>>& shard : shards) {
    if (!*shard) return tl::unexpected(shard->error());
    opened.shards.push_back(std::make_shared<const Shard>(std::move(**shard)));
  }
  return opened;
}

Result<TokenCoding> coding_of(const fs::path& folder, const ShardManifest& manifest) {
  const auto bad = [&](const fs::path& file, const std::string& why) {
    return failed(file.string() + ": " + why, "remove the folder " + folder.string() + " and build its shards again");
  };
  Result<TokenCoding> coding = TokenCoding::bytes();
  const fs::path file = folder / "tokenizer.json";
  if (manifest.tokenizer != coding->name()) {
    const Result<std::string> json = read_file(file, largest_tokenizer);
    if (!json) return tl::unexpected(json.error());
    if (sha256_hex(std::string_view(*json)) != manifest.tokenizer_sha256)
      return bad(file, "its SHA-256 is not the manifest's");
    Result<Tokenizer> tokenizer = parse_tokenizer(*json, file.string(), /*made_here=*/true);
    if (!tokenizer) return tl::unexpected(tokenizer.error());
    coding = TokenCoding::of(std::move(*tokenizer), manifest.tokenizer);
    if (!coding) return coding;
  }
  if (coding->sha256() != manifest.tokenizer_sha256 || coding->vocabulary_size() != manifest.vocabulary_size ||
      coding->end_of_document() != manifest.end_of_document)
    return bad(folder / "manifest.json", "what it says of the tokenizer is not so");
  return coding;
}

// A document is told by its hash alone: two different texts have the same one with a probability of 2^-64.
Status check_held_out(const std::vector<Opened>& parts, const std::vector<Dataset::Part>& folders) {
  struct Place {
    const ShardRecord* shard;
    std::size_t part, document;
  };
  std::unordered_map<std::uint64_t, Place> held_out;
  const auto visit = [&](ShardRole role, const auto& look) -> Status {
    for (std::size_t p = 0; p < parts.size(); ++p)
      for (std::size_t s = 0; s < parts[p].shards.size(); ++s) {
        const ShardRecord& record = parts[p].manifest.shards[s];
        if (record.role != role) continue;
        for (std::size_t d = 0; d < parts[p].shards[s]->size(); ++d)
          if (Status fine = look(parts[p].shards[s]->hash(d), Place{&record, p, d}); !fine) return fine;
      }
    return {};
  };
  if (Status fine = visit(ShardRole::held_out,
                          [&](std::uint64_t hash, const Place& place) -> Status {
                            held_out.try_emplace(hash, place);
                            return {};
                          });
      !fine)
    return fine;
  if (held_out.empty()) return {};
  return visit(ShardRole::train, [&](std::uint64_t hash, const Place& place) -> Status {
    const auto found = held_out.find(hash);
    if (found == held_out.end()) return {};
    const auto name = [&](const Place& at) {
      return fmt::format("document {} of {}", at.document, (folders[at.part].folder / at.shard->path).string());
    };
    return refused(
        fmt::format("a held-out document is among the training documents: {} is {}", name(found->second), name(place)),
        "build the shards again without it, or validation measures what was learnt by heart");
  });
}

}  // namespace

void TokenDocuments::add(std::shared_ptr<const Shard> shard) {
  first_.push_back(first_.back() + shard->size());
  tokens_ += shard->tokens();
  shards_.push_back(std::move(shard));
}

std::size_t TokenDocuments::shard_of(std::size_t i) const {
  if (shards_.size() == 1) return 0;
  return static_cast<std::size_t>(std::upper_bound(first_.begin(), first_.end(), i) - first_.begin() - 1);
}

TokenDocument TokenDocuments::document(std::size_t i) const {
  const std::size_t shard = shard_of(i);
  return shards_[shard]->document(i - first_[shard]);
}

std::int64_t TokenDocuments::document_tokens(std::size_t i) const {
  const std::size_t shard = shard_of(i);
  return shards_[shard]->document_tokens(i - first_[shard]);
}

Result<Dataset> Dataset::open(const std::vector<Part>& parts, ThreadTeam& team, const CorpusProgress& progress,
                              std::stop_token stop) {
  std::vector<Opened> opened;
  for (const Part& part : parts) {
    Result<Opened> one = open_part(part.folder, team, progress, stop);
    if (!one) return tl::unexpected(one.error());
    if (!opened.empty() && one->manifest.tokenizer_sha256 != opened[0].manifest.tokenizer_sha256)
      return refused(
          fmt::format("the shards in {} are of the tokenizer {}, those in {} of {}", parts[0].folder.string(),
                      opened[0].manifest.tokenizer, part.folder.string(), one->manifest.tokenizer),
          "build them with one tokenizer");
    opened.push_back(std::move(*one));
  }
  if (opened.empty()) return failed("no shards are named");
  if (Status fine = check_held_out(opened, parts); !fine) return tl::unexpected(fine.error());
  Result<TokenCoding> coding = coding_of(parts[0].folder, opened[0].manifest);
  if (!coding) return tl::unexpected(coding.error());

  Dataset data;
  data.coding_ = std::make_shared<const TokenCoding>(std::move(*coding));
  Sha256 hash;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    const std::size_t first = data.sources_.size();
    double weights = 0;
    for (const ShardSource& source : opened[p].manifest.sources) weights += source.weight;
    for (const ShardSource& source : opened[p].manifest.sources)
      data.sources_.push_back({source.name, weights > 0 ? parts[p].weight * source.weight / weights : 0, {}, {}});
    for (std::size_t s = 0; s < opened[p].shards.size(); ++s) {
      const ShardRecord& record = opened[p].manifest.shards[s];
      DataSource& source = data.sources_[first + record.source];
      (record.role == ShardRole::train ? source.train : source.held_out).add(opened[p].shards[s]);
      if (record.role == ShardRole::train) hash.update(record.sha256);
    }
  }
  data.corpus_hash_ = hash.hex().substr(0, 16);
  return data;
}

double unigram_entropy(const Dataset& data) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(data.coding().vocabulary_size()));
  std::int64_t total = 0;
  for (const DataSource& source : data.sources()) {
    for (std::size_t i = 0; i < source.held_out.size(); ++i) {
      const TokenDocument document = source.held_out.document(i);
      for (std::size_t t = 0; t < document.size(); ++t) ++counts[static_cast<std::size_t>(document[t])];
    }
    total += source.held_out.tokens();
  }
  if (total == 0) return std::numeric_limits<double>::quiet_NaN();
  double entropy = 0;
  for (const std::int64_t n : counts) {
    const double share = static_cast<double>(n) / static_cast<double>(total);
    if (n > 0) entropy -= share * std::log(share);
  }
  return entropy;
}

}  // namespace stacklab
