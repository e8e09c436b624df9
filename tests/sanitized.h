// Whether a sanitizer watches this build: then its own memory counts as the process's.
#pragma once

namespace stacklab {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif

}  // namespace stacklab
