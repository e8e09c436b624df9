#include "engine/service/tokenizers.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>

#include "engine/base/atomic_file.h"
#include "engine/base/missing_file.h"
#include "engine/base/thread_team.h"
#include "engine/data/byte_source.h"
#include "engine/data/corpus.h"
#include "engine/data/document_reader.h"

namespace stacklab {
namespace {

namespace fs = std::filesystem;

// Gives the documents of files and corpora, a piece of each file in memory at a time.
class Documents {
 public:
  explicit Documents(const std::vector<fs::path>& inputs) : inputs_(inputs) {}

  Result<bool> next(std::string_view& document) {
    for (;;) {
      if (corpus_) {
        if (next_in_corpus_ < corpus_->size()) {
          const std::span<const std::uint8_t> bytes = corpus_->document(next_in_corpus_++);
          document = {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
          ++documents_;
          return true;
        }
        corpus_.reset();
      }
      if (file_ != nullptr) {
        if (Result<bool> more = take(document); !more || *more) return more;
        texts_.push_back({inputs_[input_ - 1].string(), file_->file_bytes(), file_->file_sha256()});
        file_.reset();
      }
      if (input_ == inputs_.size()) return false;
      if (Status opened = open(inputs_[input_++]); !opened) return tl::unexpected(opened.error());
    }
  }

  std::vector<TrainingText> texts() { return std::move(texts_); }
  std::int64_t documents() const { return documents_; }

 private:
  static constexpr std::size_t block = std::size_t{1} << 20;
  static constexpr std::size_t long_document = std::size_t{4} << 20;
  static constexpr std::size_t longest_piece = std::size_t{64} << 20;

  Status open(const fs::path& path) {
    std::error_code ignored;
    if (!fs::exists(path, ignored) && !ignored) return tl::unexpected(missing_file(path));
    if (fs::is_directory(path, ignored)) {
      if (!fs::exists(path / "manifest.json", ignored))
        return failed(fmt::format("{} is a folder without a corpus", path.string()),
                      fmt::format("make one of its files: stacklab corpus add {}", path.string()));
      Result<Corpus> corpus = Corpus::open(path);
      if (!corpus) return tl::unexpected(corpus.error());
      texts_.push_back({corpus->info().name, corpus->info().bytes, corpus->info().sha256});
      corpus_ = std::move(*corpus);
      next_in_corpus_ = 0;
      return {};
    }
    // Their words, not their quotes and keys, are what a vocabulary is for.
    if (kind_of_name(path).value_or(FileKind::text) != FileKind::text)
      return failed(fmt::format("{} holds documents among other things", path.string()),
                    fmt::format("take them out first: stacklab corpus add {}", path.string()));
    if (Status text = check_text(path); !text) return text;
    auto file = open_bytes(path);
    if (!file) return tl::unexpected(file.error());
    file_ = std::move(*file);
    buffer_.clear();
    begin_ = looked_at_ = 0;
    return {};
  }

  // The next document of the open file, or a part of a very long one.
  Result<bool> take(std::string_view& document) {
    for (;;) {
      const std::string_view rest = std::string_view(buffer_).substr(begin_);
      const std::size_t end = rest.find('\0', looked_at_);
      if (end != std::string_view::npos) {
        document = rest.substr(0, end);
        begin_ += end + 1;
        looked_at_ = 0;
        ++documents_;
        return true;
      }
      if (rest.size() > long_document) {
        std::size_t cut = find_safe_cut(rest, std::max(long_document, looked_at_));
        // Memory stays bounded, whatever the text.
        if (cut == std::string_view::npos && rest.size() >= longest_piece) cut = rest.size();
        if (cut != std::string_view::npos) {
          document = rest.substr(0, cut);
          begin_ += cut;
          looked_at_ = 0;
          return true;
        }
      }
      looked_at_ = rest.size() < 2 ? 0 : rest.size() - 2;
      buffer_.erase(0, begin_);
      begin_ = 0;
      const std::size_t old = buffer_.size();
      buffer_.resize(old + block);
      const Result<std::size_t> read = file_->read(std::span(buffer_).subspan(old));
      if (!read) return tl::unexpected(read.error());
      buffer_.resize(old + *read);
      if (buffer_.size() > old) continue;
      if (buffer_.empty()) return false;
      last_ = std::move(buffer_);
      buffer_.clear();
      looked_at_ = 0;
      document = last_;
      ++documents_;
      return true;
    }
  }

  const std::vector<fs::path>& inputs_;
  std::size_t input_ = 0;
  std::optional<Corpus> corpus_;
  std::size_t next_in_corpus_ = 0;
  std::unique_ptr<ByteSource> file_;
  std::string buffer_, last_;
  std::size_t begin_ = 0, looked_at_ = 0;  // of what is not given yet; behind begin_, where no end is
  std::vector<TrainingText> texts_;
  std::int64_t documents_ = 0;
};

// Whether inner is outer, or in it.
bool is_within(const fs::path& inner, const fs::path& outer) {
  std::error_code error;
  const fs::path in = fs::weakly_canonical(fs::absolute(inner, error), error),
                 out = fs::weakly_canonical(fs::absolute(outer, error), error);
  return std::mismatch(out.begin(), out.end(), in.begin(), in.end()).first == out.end();
}

Status may_write(const fs::path& folder, const std::vector<fs::path>& inputs, bool replace) {
  // "tok/" is "tok".
  const fs::path plain = folder.has_filename() ? folder : folder.parent_path();
  std::error_code error;
  if (!fs::exists(fs::symlink_status(plain, error))) return {};
  const fs::path here = fs::current_path(error);
  if (!error && is_within(here, plain))
    return refused(fmt::format("{} is the folder that you are in", folder.string()), "name another folder");
  for (const fs::path& input : inputs)
    if (is_within(input, plain))
      return refused(
          fmt::format("{} is to be read, and in {}, which would be replaced", input.string(), folder.string()),
          "name another folder");
  if (Status fine = may_replace_tokenizer(plain); !fine) return fine;
  if (replace) return {};
  return refused(fmt::format("{} exists", folder.string()), "name another folder, or replace it with --yes");
}

// What the inputs hold in all, as far as it is known beforehand.
std::int64_t size_of(const std::vector<fs::path>& inputs) {
  std::int64_t all = 0;
  for (const fs::path& input : inputs) {
    std::error_code error;
    const std::uintmax_t size = fs::file_size(fs::is_directory(input, error) ? input / "documents.bin" : input, error);
    if (!error) all += static_cast<std::int64_t>(size);
  }
  return all;
}

}  // namespace

Result<TokenizerReport> train_tokenizer_from(const TokenizerJob& job, const TrainingProgress& progress,
                                             std::stop_token stop) {
  const auto begin = std::chrono::steady_clock::now();
  // Before minutes of work, not after.
  if (Status fine = may_write(job.folder, job.inputs, job.replace); !fine) return tl::unexpected(fine.error());
  ThreadTeam team(job.threads);
  Documents documents(job.inputs);
  const std::int64_t size = size_of(job.inputs);
  Result<TrainedTokenizer> trained = train_tokenizer(
      job.training, [&](std::string_view& document) { return documents.next(document); }, team,
      [&](std::string_view what, std::int64_t done, std::int64_t total) {
        // Of packed text there is more than of its file.
        progress(what, done, total == 0 && done <= size ? size : total);
      },
      stop);
  if (!trained) return tl::unexpected(trained.error());
  if (trained->bytes == 0)
    return failed(fmt::format("there is no text in {}{}", job.inputs[0].string(),
                              job.inputs.size() > 1 ? " and the other inputs" : ""),
                  "name files with text");
  TokenizerReport report{std::move(*trained), documents.texts(), documents.documents(), 0};
  const Status written = write_tokenizer(job.folder, report.trained.model, report.texts, job.replace);
  if (!written) return tl::unexpected(written.error());
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return report;
}

Result<Tokenizer> import_tokenizer(const fs::path& path, const fs::path& folder, bool replace) {
  if (Status fine = may_write(folder, {path}, replace); !fine) return tl::unexpected(fine.error());
  Result<Tokenizer> tokenizer = read_tokenizer(path);
  if (!tokenizer) return tokenizer;
  TokenizerModel model = tokenizer->model();
  if (is_older_cl100k(model.pattern)) model.pattern = pattern_of(Split::cl100k);
  const Status written = write_tokenizer(folder, model, {}, replace);
  if (!written) return tl::unexpected(written.error());
  return tokenizer;
}

}  // namespace stacklab
