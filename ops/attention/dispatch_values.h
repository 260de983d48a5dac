// What vulkan.cc and attention.glsl both count on: C++ and GLSL include it.

#ifndef OXB_ATTENTION_DISPATCH_VALUES
#define OXB_ATTENTION_DISPATCH_VALUES

#define OXB_MAX_SOURCES 3
#define OXB_ITEMS_AT_ONCE 4

// Places among the values of a dispatch. What differs from run to run, then, from OXB_FIXED on, what does not.
#define OXB_QUERY_ROWS 0
#define OXB_LAST_SOURCE 1
#define OXB_RELATIVE_ZERO 2
#define OXB_BLOCKS 3
// One for each source.
#define OXB_SOURCE_COUNT 4
#define OXB_SOURCE_HEAD 7
#define OXB_FIXED 10
#define OXB_SOURCE_CAPACITY 10
#define OXB_SOURCE_PINNED 13
// Which source may have room for more or fewer values than keys, and for how many.
#define OXB_UNEVEN_SOURCE 16
#define OXB_VALUE_CAPACITY 17
#define OXB_HEAD_WIDTH 18
#define OXB_HEADS 19
#define OXB_GROUP_HEADS 20
#define OXB_SCALE 21
#define OXB_DISTANCES 22
#define OXB_PATTERN_FLAGS 23
#define OXB_BEFORE 24
#define OXB_AFTER 25
#define OXB_FIRST 26
#define OXB_LENGTH 27

// In the pattern's flags, whose low byte is its kind.
#define OXB_CAUSAL 256
#define OXB_WRAP 512
#define OXB_OWN 1024
#define OXB_ALIGNED 2048

// In the constant of the terms, whose bit i says whether there is the kind i.
#define OXB_MASKS_QUERIES 30
#define OXB_ODD_HEADS 31

// When a term's function is called.
#define OXB_BEFORE_SCALE 0
#define OXB_AFTER_SCALE 1

#endif
