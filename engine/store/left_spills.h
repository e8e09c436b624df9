// What processes that are gone left in spill files: rows, and perhaps the completion record of a run that seems lost.
#pragma once

#include <SQLiteCpp/Database.h>

#include <filesystem>

namespace stacklab::store {

// Takes in all of it. What cannot be taken in stays, and is told.
void take_in_left_spills(SQLite::Database& db, const std::filesystem::path& workspace);

// The same for who only reads, without waiting: where something is left and the store can be written.
void take_in_before_reading(const std::filesystem::path& workspace);

}  // namespace stacklab::store
