#include "engine/base/missing_file.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "engine/base/text.h"

namespace stacklab {

Error missing_file(const std::filesystem::path& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  // "notes/" is "notes".
  const fs::path plain = path.has_filename() ? path : path.parent_path(), folder = plain.parent_path();
  if (fs::is_symlink(plain, error))
    return {Error::Kind::failed,
            fmt::format("{} is a link to {}, which is missing", path.string(), fs::read_symlink(plain, error).string()),
            "mend the link, or name the file itself"};
  std::vector<std::string> beside;
  for (fs::directory_iterator i(folder.empty() ? fs::path(".") : folder, error), end; !error && i != end;
       i.increment(error))
    if (const std::string name = i->path().filename().string(); !name.starts_with('.')) beside.push_back(name);
  std::string remedy = "check its name";
  if (const auto nearest = nearest_name(plain.filename().string(), beside))
    remedy = fmt::format("did you mean \"{}\"?", (folder / *nearest).string());
  return {Error::Kind::failed, "there is no file " + path.string(), remedy};
}

}  // namespace stacklab
