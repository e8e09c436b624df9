// What a checkpoint was made by and from: provenance.json of every checkpoint.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/base/fingerprint.h"
#include "engine/base/result.h"
#include "engine/run/run.h"

namespace stacklab {

struct Provenance {
  RunId config_hash;
  std::string commit;  // of the build
  bool dirty = false;  // the build had changes beside the commit
  std::string corpus, corpus_sha256;
  std::string tokenizer, tokenizer_sha256;  // "bytes" has no file to hash
  Fingerprint environment;

  bool operator==(const Provenance&) const = default;
};

// Of a run of this process; commit and dirty are this build's.
Provenance provenance_of_build();

std::string to_json(const Provenance& provenance);
// Errors name the source and the field. Unknown fields are passed over: a later version may add some.
Result<Provenance> parse_provenance(std::string_view json, std::string_view source_name);

struct FieldChange {
  std::string field;
  std::string was, is;  // "none" where one of them has no such field
  bool bits = false;    // results may differ in their last bits, or altogether

  bool operator==(const FieldChange&) const = default;
};
// What differs between two that are of one run (their config hashes are not compared), commit and data first.
std::vector<FieldChange> differences(const Provenance& was, const Provenance& is);
// "isa was AVX2, is AVX3; library.glibc was 2.36, is 2.41"
std::string to_text(const std::vector<FieldChange>& changes);

}  // namespace stacklab
