#include "engine/data/byte_source.h"

#include <fmt/format.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "engine/base/atomic_file.h"
#include "engine/base/sha256.h"

namespace stacklab {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t block = std::size_t{1} << 18;
constexpr std::string_view gzip_magic = "\x1f\x8b", zstd_magic = "\x28\xb5\x2f\xfd";

bool is_zstd(std::string_view start) {
  // Frames that hold no data may come first: 0x184D2A50 to 0x184D2A5F, little-endian.
  const bool skippable = start.size() >= 4 && (start[0] & '\xf0') == '\x50' && start.substr(1, 3) == "\x2a\x4d\x18";
  return start.starts_with(zstd_magic) || skippable;
}

class PlainSource final : public ByteSource {
 public:
  static Result<std::unique_ptr<PlainSource>> open(const fs::path& path) {
    const Result<int> fd = open_regular_file(path);
    if (!fd) return tl::unexpected(fd.error());
    return std::unique_ptr<PlainSource>(new PlainSource(path, *fd));
  }
  ~PlainSource() override { ::close(fd_); }
  PlainSource(const PlainSource&) = delete;
  PlainSource& operator=(const PlainSource&) = delete;

  Result<std::size_t> read(std::span<char> into) override {
    for (;;) {
      const ssize_t n = ::read(fd_, into.data(), into.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return tl::unexpected(file_error("cannot read", path_, errno));
      hash_.update(std::string_view(into.data(), static_cast<std::size_t>(n)));
      bytes_ += n;
      return static_cast<std::size_t>(n);
    }
  }
  // Of the start, which is still to be read.
  std::string peek(std::size_t size) const {
    std::string start(size, '\0');
    const ssize_t n = ::pread(fd_, start.data(), size, 0);
    start.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
    return start;
  }
  std::int64_t file_bytes() const override { return bytes_; }
  std::string file_sha256() const override { return hash_.hex(); }
  const fs::path& path() const { return path_; }

 private:
  PlainSource(fs::path path, int fd) : path_(std::move(path)), fd_(fd) {}

  fs::path path_;
  int fd_;
  Sha256 hash_;
  std::int64_t bytes_ = 0;
};

// A packed file read through a buffer: what gzip and zstd have in common.
class PackedSource : public ByteSource {
 public:
  explicit PackedSource(std::unique_ptr<PlainSource> file) : file_(std::move(file)), buffer_(block) {}
  std::int64_t file_bytes() const override { return file_->file_bytes(); }
  std::string file_sha256() const override { return file_->file_sha256(); }

 protected:
  // At least one more byte to unpack, if the file has one.
  Status refill() {
    if (!rest_.empty() || ended_) return {};
    const Result<std::size_t> n = file_->read(buffer_);
    if (!n) return tl::unexpected(n.error());
    rest_ = std::string_view(buffer_.data(), *n);
    ended_ = *n == 0;
    return {};
  }
  tl::unexpected<Error> bad(std::string_view why, std::string remedy = "fetch or pack the file again") const {
    const std::int64_t at = file_->file_bytes() - static_cast<std::int64_t>(rest_.size());
    return failed(fmt::format("{}: {} at byte {}", file_->path().string(), why, at), std::move(remedy));
  }

  std::string_view rest_;  // of the buffer
  bool ended_ = false;     // the file has no more

 private:
  std::unique_ptr<PlainSource> file_;
  std::vector<char> buffer_;
};

class GzipSource final : public PackedSource {
 public:
  explicit GzipSource(std::unique_ptr<PlainSource> file) : PackedSource(std::move(file)) {
    if (inflateInit2(&stream_, 15 + 16) != Z_OK) throw std::bad_alloc();
  }
  ~GzipSource() override { inflateEnd(&stream_); }
  GzipSource(const GzipSource&) = delete;
  GzipSource& operator=(const GzipSource&) = delete;

  Result<std::size_t> read(std::span<char> into) override {
    stream_.next_out = reinterpret_cast<Bytef*>(into.data());
    stream_.avail_out = static_cast<uInt>(std::min(into.size(), block));
    const uInt room = stream_.avail_out;
    while (stream_.avail_out == room) {
      if (Status done = refill(); !done) return tl::unexpected(done.error());
      if (ended_) {
        if (inside_) return bad("the gzip data end too early,");
        break;
      }
      // Between members and after the last one there may be zeros, as tapes have them.
      if (!inside_) {
        rest_.remove_prefix(std::min(rest_.find_first_not_of('\0'), rest_.size()));
        if (rest_.empty()) continue;
        inflateReset(&stream_);
        inside_ = true;
      }
      stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(rest_.data()));
      stream_.avail_in = static_cast<uInt>(rest_.size());
      const int code = inflate(&stream_, Z_NO_FLUSH);
      rest_.remove_prefix(rest_.size() - stream_.avail_in);
      if (code == Z_STREAM_END)
        inside_ = false;
      else if (code != Z_OK && code != Z_BUF_ERROR)
        return bad(fmt::format("the gzip data are damaged ({})", stream_.msg ? stream_.msg : "no reason known"));
    }
    return room - stream_.avail_out;
  }

 private:
  z_stream stream_{};
  bool inside_ = false;  // a member
};

class ZstdSource final : public PackedSource {
 public:
  explicit ZstdSource(std::unique_ptr<PlainSource> file)
      : PackedSource(std::move(file)), stream_(ZSTD_createDStream()) {
    if (stream_ == nullptr) throw std::bad_alloc();
  }
  ~ZstdSource() override { ZSTD_freeDStream(stream_); }
  ZstdSource(const ZstdSource&) = delete;
  ZstdSource& operator=(const ZstdSource&) = delete;

  Result<std::size_t> read(std::span<char> into) override {
    ZSTD_outBuffer out{into.data(), into.size(), 0};
    while (out.pos == 0) {
      // What is unpacked already may be more than there was room for.
      if (!flushing_) {
        if (Status done = refill(); !done) return tl::unexpected(done.error());
        if (ended_) {
          if (inside_) return bad("the zstd data end too early,");
          break;
        }
      }
      ZSTD_inBuffer in{rest_.data(), rest_.size(), 0};
      const std::size_t code = ZSTD_decompressStream(stream_, &out, &in);
      if (ZSTD_isError(code)) {
        const bool window = ZSTD_getErrorCode(code) == ZSTD_error_frameParameter_windowTooLarge;
        return bad(fmt::format("the zstd data cannot be unpacked ({})", ZSTD_getErrorName(code)),
                   window ? "pack the file again, without --long" : "fetch or pack the file again");
      }
      rest_.remove_prefix(in.pos);
      inside_ = code != 0;
      flushing_ = out.pos == out.size && inside_;
    }
    return out.pos;
  }

 private:
  ZSTD_DStream* stream_;
  bool inside_ = false, flushing_ = false;  // a frame; with output that did not fit
};

}  // namespace

Result<std::unique_ptr<ByteSource>> open_bytes(const fs::path& file) {
  auto plain = PlainSource::open(file);
  if (!plain) return tl::unexpected(plain.error());
  const std::string start = (*plain)->peek(4);
  if (start.starts_with(gzip_magic)) return std::make_unique<GzipSource>(std::move(*plain));
  if (is_zstd(start)) return std::make_unique<ZstdSource>(std::move(*plain));
  const std::string extension = file.extension().string();
  if (extension == ".gz" || extension == ".zst")
    return failed(file.string() + ": is not packed as its name says", "check what it is, or give it another name");
  return std::move(*plain);
}

}  // namespace stacklab
