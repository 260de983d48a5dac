# Takes what flatc writes for its object interface out of line: cmake -DHEADER=FILE -P out_of_line.cmake
#
# Each of some two hundred functions that pack, unpack and copy a table is inline, and a compiler instantiates what they
# use in every source that includes the header, whether it calls them or not: half of what a source of runtime or ops took.
# They stay in the header, without `inline` and for schema/objects.cc alone. What the pattern does not know stays inline.

cmake_policy(VERSION 3.25)
file(READ "${HEADER}" text)
set(function "[^\n]*([A-Za-z]T::|::UnPack|::Pack\\(|Union::|const [A-Za-z]+T ?\\* ?_o,|> UnPack)[^\n]*\n([ ][^\n]*\n)*}\n")
string(REGEX REPLACE "\ninline (${function})" "\n#ifdef OXB_SCHEMA_OBJECTS\n\\1#endif\n" text "${text}")
file(WRITE "${HEADER}" "${text}")
