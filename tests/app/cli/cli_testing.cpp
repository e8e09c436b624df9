#include "tests/app/cli/cli_testing.h"

#include <nlohmann/json.hpp>

namespace stacklab::cli {

Json Answer::json() const {
  Json document = Json::parse(out, nullptr, false);
  EXPECT_FALSE(document.is_discarded()) << out;
  return document;
}

}  // namespace stacklab::cli
