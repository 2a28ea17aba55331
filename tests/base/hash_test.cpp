#include "base/hash.h"

#include <gtest/gtest.h>

#include <array>
#include <set>
#include <unordered_set>
#include <vector>

#include "base/id.h"

namespace fusewise {
namespace {

template <class... Values>
Hash128 hash_of(const Values&... values) {
  Hasher hasher;
  (hasher.add(values), ...);
  return hasher.finish();
}

TEST(Hash, MatchesThePublishedValueForNothing) {
  // XXH3 with 128 bits of the empty input.
  EXPECT_EQ(hash_bytes({}).to_hex(), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(Hasher().finish(), hash_bytes({}));
}

TEST(Hash, HexTextIsReadBack) {
  const Hash128 hash = hash_text("fusewise");
  EXPECT_EQ(hash.to_hex().size(), 32U);
  EXPECT_EQ(Hash128::from_hex(hash.to_hex()), hash);
  EXPECT_EQ((Hash128{1, 0xAB}).to_hex(), "000000000000000100000000000000ab");
  for (const char* wrong : {"", "12", "000000000000000100000000000000ag", "-00000000000000100000000000000ab",
                            "000000000000000100000000000000ab0"}) {
    EXPECT_FALSE(Hash128::from_hex(wrong).has_value()) << wrong;
  }
}

TEST(Hash, LengthsSeparateTexts) {
  const std::string_view empty;
  EXPECT_NE(hash_of("ab", "c"), hash_of("a", "bc"));
  EXPECT_NE(hash_of("ab"), hash_of("ab", empty));
  EXPECT_NE(hash_of(empty), hash_of());
  const std::array<int64_t, 3> numbers{1, 2, 3};
  EXPECT_NE(hash_of(std::span<const int64_t>(numbers)), hash_of(1, 2, 3));
}

TEST(Hash, WidthOfAnIntegerDoesNotMatter) {
  enum class Colour : uint8_t { red = 3 };
  EXPECT_EQ(hash_of(3), hash_of(int64_t{3}));
  EXPECT_EQ(hash_of(int8_t{-1}), hash_of(int64_t{-1}));
  EXPECT_EQ(hash_of(Colour::red), hash_of(3));
  EXPECT_NE(hash_of(1, 2), hash_of(2, 1));
  EXPECT_NE(hash_of(0.0), hash_of(-0.0));
}

TEST(Hash, GoesOnAfterFinish) {
  Hasher hasher;
  hasher.add(1);
  const Hash128 first = hasher.finish();
  EXPECT_EQ(first, hasher.finish());
  hasher.add(2);
  EXPECT_NE(first, hasher.finish());
  EXPECT_EQ(hasher.finish(), hash_of(1, 2));
}

TEST(Hash, LongInputsInPiecesAndWhole) {
  std::vector<std::byte> bytes(10007);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 31);
  Hasher whole;
  whole.add_bytes(bytes);
  Hasher again;
  again.add_bytes(bytes);
  EXPECT_EQ(whole.finish(), again.finish());
  bytes[5000] ^= std::byte{1};
  Hasher changed;
  changed.add_bytes(bytes);
  EXPECT_NE(whole.finish(), changed.finish());
}

struct LeftTag;
struct RightTag;
using LeftId = Id<LeftTag>;
static_assert(!std::is_convertible_v<LeftId, Id<RightTag>>);
static_assert(!std::is_convertible_v<int, LeftId>);
static_assert(sizeof(LeftId) == 4);

TEST(Id, ComparesAndHashes) {
  EXPECT_FALSE(LeftId().valid());
  EXPECT_TRUE(LeftId{0}.valid());
  EXPECT_LT(LeftId{1}, LeftId{2});
  EXPECT_EQ(LeftId{7}, LeftId{7});
  std::unordered_set<LeftId> ids;
  std::set<size_t> hashes;
  for (uint32_t i = 0; i < 1000; ++i) {
    ids.insert(LeftId{i});
    hashes.insert(std::hash<LeftId>()(LeftId{i}));
  }
  EXPECT_EQ(ids.size(), 1000U);
  EXPECT_EQ(hashes.size(), 1000U);
}

}  // namespace
}  // namespace fusewise
