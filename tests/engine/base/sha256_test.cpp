#include "engine/base/sha256.h"

#include <gtest/gtest.h>

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
}

}  // namespace
}  // namespace stacklab
