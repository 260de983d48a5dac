package dev.oxbow

import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.NonCancellable
import kotlinx.coroutines.async
import kotlinx.coroutines.coroutineScope
import kotlinx.coroutines.withContext

/** [TextModel.classify] off the caller's thread. Cancelling ends it, and it is over when the model can be used again: of all these. */
suspend fun TextModel.awaitClasses(text: String): List<Scored> = answered { classify(text) }

/** [TextModel.embed] off the caller's thread. */
suspend fun TextModel.awaitVector(text: String): FloatArray = answered { embed(text) }

/** [TextModel.translate] off the caller's thread. */
suspend fun TextModel.awaitTranslation(text: String): String = answered { translate(text) }

/** [TextModel.fillMask] off the caller's thread. */
suspend fun TextModel.awaitWords(text: String, count: Int): List<Scored> = answered { fillMask(text, count) }

private suspend fun <T> TextModel.answered(ask: () -> T): T =
    coroutineScope {
        // A failure is carried, not thrown, so that it cannot take the place of the cancellation that caused it.
        val answer = async(Dispatchers.IO) { runCatching(ask) }
        try {
            answer.await()
        } catch (e: CancellationException) {
            withContext(NonCancellable) {
                // Refused when it was closed meanwhile, which ends the call as well.
                runCatching { session.cancel() }
                answer.join()
                // Forgets a cancel that came too late, and a run that ended half-way.
                runCatching { session.reset() }
            }
            throw e
        }
    }.getOrThrow()
