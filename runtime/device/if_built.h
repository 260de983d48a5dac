#pragma once

// OXB_IF_BUILT(OXB_BUILD_<NAME>, object): its address in a build with that backend, else null without a word about the
// object, which that build does not have.

#define OXB_IF_BUILT_0(object) nullptr
#define OXB_IF_BUILT_1(object) &object
#define OXB_IF_BUILT_JOINED(built, object) OXB_IF_BUILT_##built(object)
#define OXB_IF_BUILT(built, object) OXB_IF_BUILT_JOINED(built, object)
