// Expected failures are values: a Result holds what was asked for, or an Error that says what, where and how to mend
// it.
#pragma once

#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace stacklab {

struct Error {
  // The kind decides the exit code of the command line (failed 1, usage 2, refused 3, stopped 130).
  enum class Kind { failed, usage, refused, stopped };

  Kind kind = Kind::failed;
  std::string what;    // what went wrong, and where: names the file, the field or the operation
  std::string remedy;  // what the user can do; may be empty

  // One line: "what (remedy)".
  std::string message() const { return remedy.empty() ? what : what + " (" + remedy + ")"; }
};

template <class T>
using Result = tl::expected<T, Error>;
using Status = Result<void>;

inline tl::unexpected<Error> failed(std::string what, std::string remedy = {}) {
  return tl::unexpected<Error>({Error::Kind::failed, std::move(what), std::move(remedy)});
}
inline tl::unexpected<Error> usage_error(std::string what, std::string remedy = {}) {
  return tl::unexpected<Error>({Error::Kind::usage, std::move(what), std::move(remedy)});
}
inline tl::unexpected<Error> refused(std::string what, std::string remedy = {}) {
  return tl::unexpected<Error>({Error::Kind::refused, std::move(what), std::move(remedy)});
}
inline tl::unexpected<Error> stopped(std::string what) {
  return tl::unexpected<Error>({Error::Kind::stopped, std::move(what), {}});
}

}  // namespace stacklab
