#include "engine/data/shard_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <unordered_map>
#include <utility>

#include "engine/base/atomic_file.h"
#include "engine/base/sha256.h"
#include "engine/base/text.h"
#include "engine/base/thread_team.h"

namespace stacklab {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t batch_bytes = std::size_t{16} << 20, part_bytes = std::size_t{1} << 20;
constexpr std::int64_t most_documents = std::int64_t{1} << 21;  // of a shard

// Of the text as a person reads it: a stretch of white space is one space, and there is none at either end. Another
// line end, or a last newline more, makes no other text of an exam. None: there is nothing to read.
template <class Release>
std::optional<std::uint64_t> reading_hash(std::string_view text, const Release& release) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  Sha256 hash;
  std::string read;
  bool any = false, space = false;
  for (; !text.empty(); text.remove_prefix(std::min(text.size(), batch_bytes))) {
    const std::string_view piece = text.substr(0, batch_bytes);
    for (const char c : piece) {
      if (c == ' ' || (c >= '\t' && c <= '\r')) {
        space = any;
        continue;
      }
      if (std::exchange(space, false)) read.push_back(' ');
      read.push_back(c);
      any = true;
    }
    hash.update(read);
    read.clear();
    if (text.size() > batch_bytes) release(piece);
  }
  return any ? std::optional(document_hash(hash.hex())) : std::nullopt;
}

class ShardBuild {
 public:
  ShardBuild(const fs::path& folder, const TokenCoding& coding, const ShardOptions& options, ThreadTeam& team)
      : folder_(folder), coding_(coding), options_(options), team_(team) {
    manifest_.recipe = options.recipe;
    manifest_.tokenizer = coding.name();
    manifest_.tokenizer_sha256 = coding.sha256();
    manifest_.vocabulary_size = coding.vocabulary_size();
    manifest_.end_of_document = coding.end_of_document();
  }

  // position: of the source among the inputs. report(bytes): how many more are done.
  template <class Report>
  Status add(std::size_t position, const Corpus& corpus, bool held_out, const Report& report, std::stop_token stop) {
    source_ = position;
    corpus_ = &corpus;
    source_held_out_ = held_out;
    for (std::size_t i = 0; i < corpus.size(); ++i) {
      const auto bytes = corpus.document(i);
      if (bytes.empty()) {
        ++manifest_.removed["empty"];
        continue;
      }
      const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      if (Status done = add_document(i, text, report, stop); !done) return done;
    }
    if (Status done = flush(report, stop); !done) return done;
    for (ShardRole role : {ShardRole::train, ShardRole::held_out})
      if (Status done = close(role); !done) return done;
    return {};
  }

  // Hashes what was written, on all threads, and writes the manifest.
  Result<ShardManifest> finish() {
    std::ranges::sort(manifest_.shards, {}, &ShardRecord::path);
    std::vector<Status> done(manifest_.shards.size());
    std::atomic<std::size_t> next = 0;
    team_.for_each(team_.threads(), [&](std::int64_t) {
      for (std::size_t i = next++; i < done.size(); i = next++) done[i] = measure(manifest_.shards[i]);
    });
    for (const Status& one : done)
      if (!one) return tl::unexpected(one.error());
    if (!coding_.json().empty())
      if (Status written = write_file_atomically(folder_ / "tokenizer.json", coding_.json()); !written)
        return tl::unexpected(written.error());
    if (Status written = write_shard_manifest(folder_, manifest_); !written) return tl::unexpected(written.error());
    return manifest_;
  }

  std::vector<ShardSource>& sources() { return manifest_.sources; }

 private:
  struct Document {
    std::size_t index;
    std::string_view text;
    std::string sha256 = {};
    std::optional<std::uint64_t> reading = {};  // where exams are held out
  };
  struct Part {
    std::string_view text;
    std::size_t document;  // among documents_
    bool last;
  };
  struct Origin {
    std::size_t source, document;
  };
  struct Open {
    std::optional<ShardWriter> writer;
    std::string name;
    int count = 0;  // of shards with this role so far
  };

  template <class Report>
  Status add_document(std::size_t index, std::string_view text, const Report& report, std::stop_token stop) {
    documents_.push_back({index, text});
    while (!text.empty()) {
      const std::size_t cut = text.size() > part_bytes ? coding_.safe_cut(text, part_bytes) : std::string_view::npos;
      const std::string_view part = text.substr(0, cut);
      text.remove_prefix(part.size());
      parts_.push_back({part, documents_.size() - 1, text.empty()});
      pending_ += part.size();
      if (pending_ < batch_bytes) continue;
      if (Status done = flush(report, stop); !done) return done;
      // The rest of a very long document goes on in the next batch.
      if (!text.empty()) documents_ = {std::move(unfinished_)};
    }
    return {};
  }

  template <class Report>
  Status flush(const Report& report, std::stop_token stop) {
    if (stop.stop_requested()) return stopped("stopped while the shards were built");
    team_.for_each(static_cast<std::int64_t>(documents_.size()), [&](std::int64_t i) {
      Document& document = documents_[static_cast<std::size_t>(i)];
      if (!document.sha256.empty()) return;
      document.sha256 = hash(document.text);
      if (!source_held_out_ && exams_.empty()) return;
      document.reading = reading_hash(document.text, [this](std::string_view piece) { release(piece); });
    });
    std::vector<std::string_view> texts;
    for (const Part& part : parts_) texts.push_back(part.text);
    auto ids = coding_.encode(texts, team_);
    if (!ids) return tl::unexpected(ids.error());
    for (std::size_t i = 0; i < parts_.size(); ++i)
      if (Status done = write(parts_[i], (*ids)[i]); !done) return done;
    if (!parts_.empty()) {
      const std::string_view first = parts_.front().text, last = parts_.back().text;
      release(std::string_view(first.data(), static_cast<std::size_t>(last.data() + last.size() - first.data())));
      unfinished_ = std::move(documents_.back());
    }
    report(static_cast<std::int64_t>(pending_));
    documents_.clear();
    parts_.clear();
    pending_ = 0;
    return {};
  }

  void release(std::string_view text) const {
    corpus_->release({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
  }

  // Of a document that may be larger than memory.
  std::string hash(std::string_view text) const {
    if (text.size() <= batch_bytes) return sha256_hex(text);
    Sha256 hash;
    for (; !text.empty(); text.remove_prefix(std::min(text.size(), batch_bytes))) {
      hash.update(text.substr(0, batch_bytes));
      release(text.substr(0, batch_bytes));
    }
    return hash.hex();
  }

  tl::unexpected<Error> twice(const Document& document, const Origin& held_out, std::string_view differing) const {
    return refused(fmt::format("document {} of {} is a training document, and held out as document {} of {}{}",
                               document.index, manifest_.sources[source_].name, held_out.document,
                               manifest_.sources[held_out.source].name, differing),
                   "remove it from one of them");
  }

  Status write(const Part& part, std::vector<TokenId>& ids) {
    const Document& document = documents_[part.document];
    const bool held_out = source_held_out_ || is_held_out(document.sha256, options_.validation_fraction);
    const std::uint64_t hash = document_hash(document.sha256);
    ShardSource& source = manifest_.sources[source_];
    if (part.last) {
      ++source.documents;
      if (held_out)
        held_out_.try_emplace(hash, Origin{source_, document.index});
      else if (const auto found = held_out_.find(hash); found != held_out_.end())
        return twice(document, found->second, "");
      if (document.reading && source_held_out_)
        exams_.try_emplace(*document.reading, Origin{source_, document.index});
      else if (document.reading && !held_out)
        if (const auto found = exams_.find(*document.reading); found != exams_.end())
          return twice(document, found->second, ", but for its white space");
      if (const auto end = coding_.end_of_document()) ids.push_back(*end);
    }
    source.tokens += static_cast<std::int64_t>(ids.size());
    source.text_bytes += static_cast<std::int64_t>(part.text.size());
    Open& open = open_[held_out];
    const ShardRole role = held_out ? ShardRole::held_out : ShardRole::train;
    if (!open.writer) {
      open.name = fmt::format("{}-{:05}.bin", to_string(role), open.count++);
      Result<ShardWriter> writer = ShardWriter::create(folder_ / open.name, coding_.vocabulary_size() > 65536);
      if (!writer) return tl::unexpected(writer.error());
      open.writer = std::move(*writer);
    }
    if (Status done = open.writer->add(ids); !done) return done;
    if (!part.last) return {};
    open.writer->end_document(hash);
    const bool full = open.writer->tokens() >= options_.shard_tokens || open.writer->documents() >= most_documents;
    return full ? close(role) : Status();
  }

  Status close(ShardRole role) {
    Open& open = open_[role == ShardRole::held_out];
    if (!open.writer) return {};
    ShardRecord record;
    record.path = open.name;
    record.role = role;
    record.source = source_;
    record.documents = open.writer->documents();
    record.tokens = open.writer->tokens();
    const Status done = open.writer->finish();
    open.writer.reset();
    manifest_.shards.push_back(std::move(record));
    return done;
  }

  Status measure(ShardRecord& record) const {
    std::error_code error;
    record.bytes = static_cast<std::int64_t>(fs::file_size(folder_ / record.path, error));
    Result<std::string> digest = sha256_file(folder_ / record.path);
    if (!digest) return tl::unexpected(digest.error());
    record.sha256 = std::move(*digest);
    return {};
  }

  const fs::path folder_;
  const TokenCoding& coding_;
  const ShardOptions& options_;
  ThreadTeam& team_;
  ShardManifest manifest_;
  const Corpus* corpus_ = nullptr;
  std::size_t source_ = 0;
  bool source_held_out_ = false;
  Open open_[2];
  std::vector<Document> documents_;  // of the batch
  std::vector<Part> parts_;
  std::size_t pending_ = 0;                             // bytes of the batch
  Document unfinished_ = {};                            // that the last batch ended inside
  std::unordered_map<std::uint64_t, Origin> held_out_;  // by document_hash
  std::unordered_map<std::uint64_t, Origin> exams_;     // what is held out whole, by reading_hash
};

}  // namespace

Result<ShardManifest> build_shards(const fs::path& dir, const std::vector<ShardInput>& inputs,
                                   const TokenCoding& coding, const ShardOptions& options, ThreadTeam& team,
                                   const CorpusProgress& progress, std::stop_token stop) {
  std::error_code error;
  if (fs::exists(fs::symlink_status(dir, error)))
    return failed(dir.string() + " exists", "name another folder, or remove this one");
  Result<AtomicDirectory> folder = AtomicDirectory::create(dir);
  if (!folder) return tl::unexpected(folder.error());
  ShardBuild build(folder->path(), coding, options, team);
  std::vector<Corpus> corpora;
  std::int64_t total = 0, done = 0;
  for (const ShardInput& input : inputs) {
    if (progress) progress("verifying " + input.corpus.filename().string(), 0, 0);
    Result<Corpus> corpus = Corpus::open(input.corpus);
    if (!corpus) return tl::unexpected(corpus.error());
    build.sources().push_back({corpus->info().name, input.held_out ? 0 : input.weight, corpus->info().sha256, 0, 0, 0});
    total += corpus->info().bytes;
    corpora.push_back(std::move(*corpus));
  }
  // What is held out comes first, so that it is known when it is met among the rest.
  for (const bool held_out : {true, false}) {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].held_out != held_out) continue;
      const std::string detail = fmt::format("tokens of {}", corpora[i].info().name);
      const auto report = [&](std::int64_t bytes) {
        done += bytes;
        if (progress) progress(detail, done, total);
      };
      report(0);
      if (Status added = build.add(i, corpora[i], held_out, report, stop); !added) return tl::unexpected(added.error());
    }
  }
  Result<ShardManifest> manifest = build.finish();
  if (!manifest) return manifest;
  if (stop.stop_requested()) return stopped("stopped while the shards were built");
  if (Status committed = folder->commit(); !committed) return tl::unexpected(committed.error());
  return manifest;
}

}  // namespace stacklab
