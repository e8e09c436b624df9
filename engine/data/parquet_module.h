// What stacklab_parquet.so offers. Plain C: it is looked up by name. No exception leaves it.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

// "26.0.1": of Arrow.
const char* stacklab_parquet_version();
// Reads the texts of a column, "a.b" for b inside a. Null on failure; the reason is put into error, cut to size.
void* stacklab_parquet_open(const char* file, const char* column, char* error, std::size_t error_size);
// 1: the next row's text, which lives until the next call; 0: there are no more; -1: failed.
int stacklab_parquet_next(void* reader, const char** text, std::size_t* size, char* error, std::size_t error_size);
// Rows read so far, and in all.
void stacklab_parquet_rows(const void* reader, std::int64_t* done, std::int64_t* all);
void stacklab_parquet_close(void* reader);
}
