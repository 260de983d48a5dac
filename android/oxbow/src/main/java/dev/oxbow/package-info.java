/**
 * Oxbow: long-context transformers over endless streams, in a memory that is fixed before the first token.
 *
 * <p>A {@link dev.oxbow.Model} is a file, mapped and verified. A {@link dev.oxbow.Session} streams tokens through it. A
 * {@link dev.oxbow.Tokenizer} turns text to tokens and back, a {@link dev.oxbow.Sampler} picks the next token, and a
 * {@link dev.oxbow.Generator} does all of that for text.
 *
 * <p><b>Null.</b> What may be null is marked so; nothing takes it, and a null argument is a {@link NullPointerException}.
 *
 * <p><b>Errors.</b> Everything the library refuses is an {@link dev.oxbow.OxbowException} with a code and words; its subclasses
 * are the kinds.
 *
 * <p><b>Threads.</b> A model and a tokenizer may be used by any threads at once. A session, a sampler and a generator
 * may move between threads but serve one at a time: a call that comes while another one runs is refused with
 * {@link dev.oxbow.OxbowException#BUSY}.
 *
 * <p><b>Closing.</b> All objects hold native memory until {@code close()}. Closing never fails, never waits, and a
 * second time does nothing. Any later call is refused with {@link dev.oxbow.OxbowException#CLOSED}. An object closed
 * while another thread runs a call of it accepts no further call; its memory goes when that call returns, and a
 * generation returns after the token it is at. Objects may be closed in any order: what an open one needs of a closed
 * one stays until it is closed too. Objects that became unreachable without being closed are freed when the next
 * object is created, which is a safety net and no plan.
 *
 * <p><b>Annotations</b> of AndroidX name the methods that take their time, or read files, and belong on a worker's thread, and
 * those of JSpecify what may be null. They are for compilers and lint: nothing of either library is needed.
 */
@NullMarked
package dev.oxbow;

import org.jspecify.annotations.NullMarked;
