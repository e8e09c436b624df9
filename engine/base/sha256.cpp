#include "engine/base/sha256.h"

#include <openssl/evp.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <new>
#include <vector>

#include "engine/base/atomic_file.h"

namespace stacklab {

struct Sha256::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  State() {
    if (context == nullptr || EVP_DigestInit_ex(context, EVP_sha256(), nullptr) != 1) throw std::bad_alloc();
  }
  ~State() { EVP_MD_CTX_free(context); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
};

Sha256::Sha256() : state_(std::make_unique<State>()) {}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::update(std::span<const std::byte> bytes) { EVP_DigestUpdate(state_->context, bytes.data(), bytes.size()); }

std::string Sha256::hex() const {
  State copy;
  EVP_MD_CTX_copy_ex(copy.context, state_->context);
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  EVP_DigestFinal_ex(copy.context, digest.data(), &size);
  static constexpr char digits[] = "0123456789abcdef";
  std::string text;
  text.reserve(2 * size);
  for (unsigned int i = 0; i < size; ++i) {
    text += digits[digest[i] >> 4];
    text += digits[digest[i] & 15];
  }
  return text;
}

std::string sha256_hex(std::span<const std::byte> bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.hex();
}

std::string sha256_hex(std::string_view bytes) { return sha256_hex(std::as_bytes(std::span(bytes))); }

Result<std::string> sha256_file(const std::filesystem::path& file, const std::function<Status(std::int64_t)>& so_far) {
  const Result<int> opened = open_regular_file(file);
  if (!opened) return tl::unexpected(opened.error());
  const struct Descriptor {
    int fd;
    ~Descriptor() { ::close(fd); }
  } open{*opened};
  Sha256 hash;
  std::vector<std::byte> buffer(1 << 20);
  for (std::int64_t done = 0;;) {
    const ssize_t n = ::read(open.fd, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return tl::unexpected(file_error("cannot read", file, errno));
    if (n == 0) return hash.hex();
    hash.update(std::span(buffer).first(static_cast<std::size_t>(n)));
    done += n;
    if (!so_far) continue;
    if (Status go_on = so_far(done); !go_on) return tl::unexpected(go_on.error());
  }
}

}  // namespace stacklab
