#include "engine/base/sha256.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/temporary_folder.h"

namespace stacklab {
namespace {

// Examples of FIPS 180-4.
constexpr std::string_view of_nothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
constexpr std::string_view of_abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

TEST(Sha256, KnownDigests) {
  EXPECT_EQ(sha256_hex(std::string_view()), of_nothing);
  EXPECT_EQ(sha256_hex("abc"), of_abc);
  EXPECT_EQ(sha256_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

TEST(Sha256, PiecesGiveTheSameAndMayGoOnAfterAReading) {
  Sha256 hash;
  EXPECT_EQ(hash.hex(), of_nothing);
  hash.update("a");
  EXPECT_NE(hash.hex(), of_abc);
  hash.update("bc");
  EXPECT_EQ(hash.hex(), of_abc);
}

TEST(Sha256, FilesInPieces) {
  const TemporaryFolder folder;
  const std::string large(3'000'001, 'x');
  put_file(folder / "large", large);
  EXPECT_EQ(sha256_file(folder / "large").value(), sha256_hex(large));
  const Result<std::string> missing = sha256_file(folder / "missing");
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().what.find("missing"), std::string::npos);
  EXPECT_FALSE(sha256_file(folder.path()));
  // What never ends, or waits for somebody to write.
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  for (const std::filesystem::path& odd : {std::filesystem::path("/dev/zero"), folder / "pipe"}) {
    const Result<std::string> endless = sha256_file(odd);
    ASSERT_FALSE(endless) << odd;
    EXPECT_NE(endless.error().what.find("not a regular file"), std::string::npos) << endless.error().what;
  }
  std::int64_t seen = 0;
  const auto stop_there = [&](std::int64_t bytes) -> Status {
    seen = bytes;
    return bytes > 2'000'000 ? Status(stopped("enough")) : Status();
  };
  EXPECT_EQ(sha256_file(folder / "large", stop_there).error().what, "enough");
  EXPECT_GT(seen, 2'000'000);
  EXPECT_LT(seen, 3'000'001);
}

}  // namespace
}  // namespace stacklab
