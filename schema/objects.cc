// The bodies of flatc's object interface, which schema/out_of_line.cmake keeps out of all other sources.

#define OXB_SCHEMA_OBJECTS 1
#include "schema/model_generated.h"
