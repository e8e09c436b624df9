// Long texts of other people cut into documents of a sensible size.
#pragma once

#include <cstdint>
#include <string_view>

#include "engine/base/result.h"
#include "engine/data/corpus.h"

namespace stacklab {

struct Extracted {
  DocumentSet documents;
  std::int64_t lines = 0;  // verses or glosses, where the text consists of such
};

// Lines "Ge1:1 In the beginning ..." (book, chapter, verse, text) as one document per chapter: the texts, each ended by
// a newline, the references gone. Chapters of a book and verses of a chapter must count from 1. Errors name the line.
Result<Extracted> chapters_from_verses(std::string_view text);

// The others add to what is there; what a text begins or ends with of blank lines is left out, blank documents too.
// Each document ends with one newline.

void add_whole(std::string_view text, Extracted& out);
// Entries between lines of "%". Overstruck letters ("_\bx") become the last of them.
void add_fortunes(std::string_view text, Extracted& out);
// Entries of a dictionary: each begins at the left edge after a blank line, with the word's hyphenation between
// backslashes ("Lames \Lames\ n. pl."). What comes before the first is left out.
void add_dictionary(std::string_view text, Extracted& out);
// Lines "00001740 03 n 01 entity ... | gloss": the glosses, one a line, neighbours of the same subject (the second
// field) together. Errors name the line that is none and not of the licence at the head (two blanks, a number).
Status add_glosses(std::string_view text, Extracted& out);
// Sections that begin with "Chapter 3. Title", "Appendix A. Title", "3.1.4. Title", "A.1. Title" at the left edge, or
// with an entry ":word: ..." three blanks from it. A heading without a text of its own stays with what follows.
void add_sections(std::string_view text, Extracted& out);

}  // namespace stacklab
