// Parquet through Apache Arrow C++. A part of its own, so that the program starts and runs where Arrow is not.
#include "engine/data/parquet_module.h"

#include <arrow/api.h>
#include <arrow/io/file.h>
#include <arrow/util/config.h>
#include <parquet/arrow/reader.h>
#include <parquet/file_reader.h>
#include <parquet/properties.h>
#include <parquet/schema.h>

#include <cstring>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace {

constexpr std::int64_t rows_at_once = 1024;

std::vector<std::string> words_of(const std::string& dotted) {
  std::vector<std::string> words(1);
  for (const char c : dotted) {
    if (c == '.')
      words.emplace_back();
    else
      words.back().push_back(c);
  }
  return words;
}

void check(const arrow::Status& status) {
  if (!status.ok()) throw std::runtime_error(status.ToString());
}
template <class T>
T checked(arrow::Result<T> result) {
  check(result.status());
  return std::move(result).ValueUnsafe();
}

class Reader {
 public:
  Reader(const char* file, const char* column) : column_(column), path_(words_of(column)) {
    auto input = checked(arrow::io::ReadableFile::Open(file));
    // Pages are read as they are needed, never a whole row group.
    parquet::ReaderProperties properties = parquet::default_reader_properties();
    properties.enable_buffered_stream();
    parquet::ArrowReaderProperties arrow_properties(/*use_threads=*/false);
    arrow_properties.set_batch_size(rows_at_once);
    arrow_properties.set_pre_buffer(false);
    parquet::arrow::FileReaderBuilder builder;
    check(builder.Open(input, properties));
    builder.properties(arrow_properties);
    check(builder.Build(&file_));
    const auto metadata = file_->parquet_reader()->metadata();
    const int index = metadata->schema()->ColumnIndex(column_);
    if (index < 0) {
      std::string known;
      for (int i = 0; i < metadata->schema()->num_columns() && known.size() < 200; ++i)
        known += (known.empty() ? "" : ", ") + metadata->schema()->Column(i)->path()->ToDotString();
      throw std::runtime_error("there is no column \"" + column_ + "\"; its columns are: " + known);
    }
    all_ = metadata->num_rows();
    std::vector<int> groups(static_cast<std::size_t>(metadata->num_row_groups()));
    for (std::size_t i = 0; i < groups.size(); ++i) groups[i] = static_cast<int>(i);
    batches_ = checked(file_->GetRecordBatchReader(groups, {index}));
  }

  bool next(std::string_view& text) {
    while (!values_ || at_ == values_->length()) {
      std::shared_ptr<arrow::RecordBatch> batch;
      check(batches_->ReadNext(&batch));
      if (!batch) return false;
      values_ = find(*batch);
      at_ = 0;
    }
    if (values_->IsNull(at_)) throw std::runtime_error("row " + std::to_string(done_) + " has no \"" + column_ + "\"");
    text = value(*values_, at_++);
    ++done_;
    return true;
  }
  std::int64_t done() const { return done_; }
  std::int64_t all() const { return all_; }

 private:
  std::shared_ptr<arrow::Array> find(const arrow::RecordBatch& batch) const {
    std::shared_ptr<arrow::Array> values = batch.GetColumnByName(path_[0]);
    for (std::size_t i = 1; values && i < path_.size(); ++i) {
      if (values->type_id() != arrow::Type::STRUCT) throw wrong_type(*values->type());
      values = static_cast<const arrow::StructArray&>(*values).GetFieldByName(path_[i]);
    }
    if (!values) throw std::runtime_error("there is no column \"" + column_ + "\"");
    return values;
  }

  std::string_view value(const arrow::Array& values, std::int64_t i) const {
    switch (values.type_id()) {
      case arrow::Type::STRING:
      case arrow::Type::BINARY:
        return static_cast<const arrow::BinaryArray&>(values).GetView(i);
      case arrow::Type::LARGE_STRING:
      case arrow::Type::LARGE_BINARY:
        return static_cast<const arrow::LargeBinaryArray&>(values).GetView(i);
      case arrow::Type::DICTIONARY: {
        const auto& words = static_cast<const arrow::DictionaryArray&>(values);
        return value(*words.dictionary(), words.GetValueIndex(i));
      }
      default:
        throw wrong_type(*values.type());
    }
  }

  std::runtime_error wrong_type(const arrow::DataType& type) const {
    return std::runtime_error("column \"" + column_ + "\" is " + type.ToString() + ", not text");
  }

  const std::string column_;
  const std::vector<std::string> path_;
  std::unique_ptr<parquet::arrow::FileReader> file_;
  std::shared_ptr<arrow::RecordBatchReader> batches_;
  std::shared_ptr<arrow::Array> values_;
  std::int64_t at_ = 0, done_ = 0, all_ = 0;
};

// What act gives, or `otherwise` and the reason.
template <class T, class Act>
T guarded(T otherwise, char* error, std::size_t error_size, const Act& act) {
  const auto say = [&](const char* what) {
    if (error_size == 0) return;
    std::strncpy(error, what, error_size - 1);
    error[error_size - 1] = '\0';
  };
  try {
    return act();
  } catch (const std::exception& e) {
    say(e.what());
  } catch (...) {
    say("an unknown fault");
  }
  return otherwise;
}

}  // namespace

const char* stacklab_parquet_version() { return ARROW_VERSION_STRING; }

void* stacklab_parquet_open(const char* file, const char* column, char* error, std::size_t error_size) {
  return guarded<void*>(nullptr, error, error_size, [&] { return new Reader(file, column); });
}

int stacklab_parquet_next(void* reader, const char** text, std::size_t* size, char* error, std::size_t error_size) {
  return guarded(-1, error, error_size, [&] {
    std::string_view value;
    if (!static_cast<Reader*>(reader)->next(value)) return 0;
    *text = value.data();
    *size = value.size();
    return 1;
  });
}

void stacklab_parquet_rows(const void* reader, std::int64_t* done, std::int64_t* all) {
  *done = static_cast<const Reader*>(reader)->done();
  *all = static_cast<const Reader*>(reader)->all();
}

void stacklab_parquet_close(void* reader) { delete static_cast<Reader*>(reader); }
