package dev.oxbow

import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.async
import kotlinx.coroutines.channels.Channel
import kotlinx.coroutines.channels.trySendBlocking
import kotlinx.coroutines.coroutineScope
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.flow

/**
 * The text as it is generated, piece by piece, each of whole characters. Generation runs on [Dispatchers.IO] and waits
 * for a collector that is slower. Cancelling the collector ends it after the token it is at, and the flow is over only
 * when it has ended, so that the session may be used or closed right afterwards. [onEnd] hears how it went, in the
 * collector's context, unless it was cancelled or failed.
 *
 * Nothing happens until the flow is collected; collecting it twice continues the stream twice.
 */
fun Generator.textFlow(prompt: String, onEnd: (Generation) -> Unit = {}): Flow<String> = flow {
    coroutineScope {
        val cancellation = Cancellation()
        val pieces = Channel<String>(Channel.BUFFERED)
        val generation =
            async(Dispatchers.IO) {
                try {
                    generate(prompt, { piece -> pieces.trySendBlocking(piece).isSuccess }, cancellation)
                } finally {
                    pieces.close()
                }
            }
        try {
            for (piece in pieces) emit(piece)
        } finally {
            // Both: the native side may be computing, or waiting for room that nobody makes any more.
            cancellation.cancel()
            pieces.cancel()
        }
        onEnd(generation.await())
    }
}
